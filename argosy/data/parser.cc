#include "argosy/data/parser.h"

#include "argosy/base/error.h"

namespace argosy {

std::unique_ptr<Parser> make_parser(std::string_view spec, std::vector<SlotSpec> slots) {
  const Call call(spec);
  for (const ParserPlugin& parser : builtin_parsers())
    if (parser.name == call.name()) return parser.make(call, std::move(slots));

  const std::string near = nearest(call.name(), parser_names());
  fail<ConfigError>("'", spec, "': no parser '", call.name(), "'",
                    near.empty() ? "" : ", did you mean " + near + "?");
}

std::vector<std::string> parser_names() {
  std::vector<std::string> names;
  for (const ParserPlugin& parser : builtin_parsers()) names.push_back(parser.name);
  return names;
}

}  // namespace argosy
