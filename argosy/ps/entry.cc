#include "argosy/ps/entry.h"

#include "argosy/base/arguments.h"

namespace argosy::ps {
namespace {

// Counts are kept as floats, which hold whole numbers exactly up to here.
constexpr Bounds kPulls{0, 0x1.0p24, "a whole number from 0 to 16777216"};
constexpr Bounds kShare{1e-30, 0x1.fffffep-1, "a number between 0 and 1"};

}  // namespace

Entry::Entry(std::string_view text) {
  if (text.empty()) return;
  const Call call(text);
  if (call.name() == "count_filter") {
    call.expect("entry", 1, {"count"});
    count_ = static_cast<uint32_t>(whole_argument(call, 0, "count", kPulls));
    if (count_ > 1) kind_ = Kind::count_filter;
  } else if (call.name() == "probability") {
    call.expect("entry", 1, {"probability"});
    probability_ = argument(call, 0, "probability", kShare);
    kind_ = Kind::probability;
  } else if (call.name() == "show_click") {
    call.expect("entry", 2, {"show", "click"});
    const std::vector<std::string> words = call.words();
    show_ = call.word("show", words.empty() ? "" : words[0]);
    click_ = call.word("click", words.size() < 2 ? "" : words[1]);
    check<ConfigError>(
        show_.empty() == click_.empty(), "'", text,
        "': expected the names of two inputs, or none: each occurrence is a show then");
    kind_ = Kind::show_click;
  } else {
    fail<ConfigError>("'", text, "': no such entry, expected count_filter, probability or ",
                      "show_click");
  }
}

}  // namespace argosy::ps
