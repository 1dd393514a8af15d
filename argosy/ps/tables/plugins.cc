// Collects the kinds of tables of this folder: every other .cc file here defines
// std::unique_ptr<RowTable> <file>(const TableSpec& spec, const Call& settings, const TableHome&
// home). A new kind of table is a new file and nothing else.
#include "argosy/ps/row_table.h"
#include "argosy/ps/tables.def"

namespace argosy::ps {

ARGOSY_COLLECT(tables, TablePlugin, builtin_tables)

}  // namespace argosy::ps
