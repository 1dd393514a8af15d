#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/call.h"
#include "argosy/base/plugins.h"
#include "argosy/data/columns.h"
#include "argosy/data/layout.h"

namespace argosy {

/// Turns lines of one text format into columns. Thread safety: full, it holds no state.
class Parser {
 public:
  explicit Parser(std::vector<SlotSpec> slots) : slots_(std::move(slots)) { check_slots(slots_); }
  virtual ~Parser() = default;

  /// The slots of every instance, in the order of the columns.
  const std::vector<SlotSpec>& slots() const { return slots_; }
  /// Lines at the start of each file that hold no instance.
  virtual size_t header_lines() const { return 0; }
  /// Adds the instance of a line to columns of slots(). For a bad line it adds nothing and returns
  /// the reason: the slot, the byte, what was expected and what was found.
  std::optional<std::string> parse(std::string_view line, Columns& out) const {
    auto reason = add_instance(line, out);
    if (!reason) return out.commit();
    out.rollback();
    return reason;
  }

 private:
  friend std::unique_ptr<Parser> make_parser(std::string_view spec, std::vector<SlotSpec> slots,
                                             const BatchLayout& layout);
  virtual std::optional<std::string> add_instance(std::string_view line, Columns& out) const = 0;

  std::vector<SlotSpec> slots_;
};

/// A parser from data/parsers/ by its settings, such as "multislot" or "criteo(hash=1000001)".
/// Formats that say what they hold need no slots; slots given for those must fit and set the names,
/// and what happens to empty ones. Slots that the layout takes as binary are held to that. Throws
/// ConfigError with the nearest known name.
std::unique_ptr<Parser> make_parser(std::string_view spec, std::vector<SlotSpec> slots = {},
                                    const BatchLayout& layout = {});

/// A file of parsers/: its name is the format's.
using ParserPlugin = Plugin<std::unique_ptr<Parser>(const Call& spec, std::vector<SlotSpec> slots)>;
std::vector<ParserPlugin> builtin_parsers();
std::vector<std::string> parser_names();

}  // namespace argosy
