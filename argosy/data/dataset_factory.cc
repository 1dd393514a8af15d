#include "argosy/data/dataset_factory.h"

#include "argosy/base/call.h"
#include "argosy/base/error.h"

namespace argosy {

std::unique_ptr<Dataset> DatasetDescription::make(const BatchLayout& layout) const {
  if (type_ == "InMemoryDataset") return std::make_unique<InMemoryDataset>(layout, options_);
  return std::make_unique<QueueDataset>(layout, options_);
}

DatasetDescription DatasetFactory::create_dataset(const std::string& type) {
  const std::vector<std::string> known = {"QueueDataset", "InMemoryDataset"};
  if (type != known[0] && type != known[1]) {
    const std::string near = nearest(type, known);
    fail<ConfigError>(
        "no data set '", type, "', ",
        near.empty() ? "expected QueueDataset or InMemoryDataset" : "did you mean " + near + "?");
  }
  return DatasetDescription(type);
}

SlotSpec data_var(std::string name, size_t shape, std::string_view dtype, int lod_level) {
  check<ConfigError>(dtype == "int64" || dtype == "float32", "variable '", name, "' is ", dtype,
                     ", expected int64 or float32");
  return {.name = std::move(name),
          .kind = dtype == "int64" ? SlotKind::ids : SlotKind::floats,
          .width = lod_level == 0 ? shape : 0};
}

}  // namespace argosy
