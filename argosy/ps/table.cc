#include "argosy/ps/table.h"

#include "argosy/ps/dense_table.h"
#include "argosy/ps/sparse_table.h"

namespace argosy {

std::unique_ptr<Table> make_table(const TableSpec& spec) {
  if (spec.elements > 0) return std::make_unique<DenseTable>(spec);
  return std::make_unique<SparseTable>(spec);
}

}  // namespace argosy
