#include "argosy/data/parser.h"

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy {

std::unique_ptr<Parser> make_parser(std::string_view spec, std::vector<SlotSpec> slots,
                                    const BatchLayout& layout) {
  const Call call(spec);
  for (const ParserPlugin& plugin : builtin_parsers()) {
    if (plugin.name != call.name()) continue;
    auto parser = plugin.make(call, std::move(slots));
    for (SlotSpec& slot : parser->slots_)
      slot.binary = std::ranges::any_of(layout.columns, [&](const ColumnFeed& column) {
        return column.binary && column.input == slot.name;
      });
    return parser;
  }

  const std::string near = nearest(call.name(), parser_names());
  fail<ConfigError>("'", spec, "': no parser '", call.name(), "'",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

std::vector<std::string> parser_names() { return names_of(builtin_parsers()); }

}  // namespace argosy
