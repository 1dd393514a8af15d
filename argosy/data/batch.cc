#include "argosy/data/batch.h"

#include <utility>

namespace argosy {

void Batch::swap_content(Batch& reader) {
  std::swap(size, reader.size);
  keys.swap(reader.keys);
  key_columns.swap(reader.key_columns);
  marks.swap(reader.marks);
  origins.swap(reader.origins);
  for (auto& [name, feed] : reader.feeds) std::swap(feed, feeds[name]);
}

}  // namespace argosy
