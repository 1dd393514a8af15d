#include "argosy/data/dataset.h"

namespace argosy {

void DataPosition::save(ByteSink& out) const {
  out.put(batches);
  out.put(static_cast<uint32_t>(files.size()));
  for (const FileMark& mark : files) {
    out.put(mark.file);
    out.put(mark.lines);
  }
}

DataPosition DataPosition::load(ByteSource& in) {
  DataPosition position{.batches = in.get<uint64_t>(), .files = {}};
  const auto files = in.get<uint32_t>();
  for (uint32_t i = 0; i < files; ++i) {
    const auto file = in.get<uint32_t>();
    position.files.push_back({file, in.get<uint64_t>()});
  }
  return position;
}

}  // namespace argosy
