
#include "argosy/data/dataset_factory.h"
#include "training.h"

namespace argosy::python {

using namespace nb::literals;

InMemoryDataset& FileData::memory() {
  check<ConfigError>(in_memory_, "only an InMemoryDataset holds its instances in memory");
  if (memory_ == nullptr) memory_ = std::make_unique<InMemoryDataset>(BatchLayout{}, options);
  return *memory_;
}

Dataset& FileData::make(const BatchLayout& layout) {
  if (in_memory_) {
    memory().set_layout(layout);
    return memory();
  }
  queue_ = std::make_unique<QueueDataset>(layout, options);
  return *queue_;
}

void bind_datasets(nb::module_& module) {
  nb::class_<FileData>(module, "FileData", "A data set of files, as a script describes it.")
      .def(nb::init<bool>(), "in_memory"_a)
      .def(
          "set_slots",
          [](FileData& self,
             const std::vector<std::tuple<std::string, std::string, size_t, uint64_t>>& slots) {
            self.options.slots.clear();
            for (const auto& [name, dtype, width, limit] : slots) {
              SlotSpec slot = data_var(name, width, dtype, width == 0 ? 1 : 0);
              slot.limit = limit;
              self.options.slots.push_back(std::move(slot));
            }
          },
          "slots"_a, "What a line holds: (name, int64 or float32, values or 0, ids below or 0).")
      .def_prop_rw(
          "files", [](const FileData& self) { return self.options.files; },
          [](FileData& self, std::vector<std::string> files) {
            self.options.files = std::move(files);
          })
      .def_prop_rw(
          "pipe_command", [](const FileData& self) { return self.options.pipe.command; },
          [](FileData& self, std::string command) {
            self.options.pipe.command = std::move(command);
          })
      .def_prop_rw(
          "batch_size", [](const FileData& self) { return self.options.batch_size; },
          [](FileData& self, size_t size) { self.options.batch_size = size; })
      .def_prop_rw(
          "threads", [](const FileData& self) { return self.options.threads; },
          [](FileData& self, size_t threads) { self.options.threads = threads; })
      .def_prop_rw(
          "drop_last", [](const FileData& self) { return self.options.drop_last; },
          [](FileData& self, bool drop) { self.options.drop_last = drop; })
      .def("load",
           [](const std::shared_ptr<FileData>& self) {
             long_call([=](const StopAsked&) { self->memory().load_into_memory(); });
           })
      .def("preload", [](FileData& self) { self.memory().preload_into_memory(); })
      .def("wait_preload",
           [](const std::shared_ptr<FileData>& self) {
             long_call([=](const StopAsked&) { self->memory().wait_preload_done(); });
           })
      .def("shuffle", [](FileData& self, uint64_t seed) { self.memory().local_shuffle(seed); })
      .def("release", [](FileData& self) { self.memory().release_memory(); })
      .def("size", [](FileData& self) { return self.memory().get_memory_data_size(); });
}

}  // namespace argosy::python
