#include "argosy/comm/call.h"

#include <fmt/format.h>

#include <array>

#include "argosy/base/error.h"

namespace argosy::comm {
namespace {

constexpr std::array kReduces = {"sum", "avg", "max", "min", "prod"};
constexpr std::array kTypes = {"f32", "f64", "i32", "i64"};
constexpr std::array kKinds = {"all_reduce", "reduce",  "reduce_scatter", "all_gather",
                               "broadcast",  "scatter", "all_to_all",     "barrier",
                               "send",       "receive", "arena",          "sub_group"};

/// Bytes from the network may be anything.
template <size_t N>
const char* entry(const std::array<const char*, N>& names, uint8_t index) {
  return index < N ? names[index] : "?";
}

bool reduces(CallKind kind) {
  return kind == CallKind::all_reduce || kind == CallKind::reduce ||
         kind == CallKind::reduce_scatter;
}

bool fits(const GroupCall& mine, GroupCall other) {
  if (mine.step.kind == CallKind::receive && other.step.kind == CallKind::send) {
    other.step = mine.step;
    if (mine.is_message() && other.is_message()) {
      other.kind = mine.kind;
      other.root = mine.root;
    }
  }
  return mine == other;
}

bool has_elements(CallKind kind) { return kind < CallKind::barrier; }

}  // namespace

size_t size_of(ElementType type) {
  return type == ElementType::f32 || type == ElementType::i32 ? 4 : 8;
}

const char* name(Reduce reduce) { return entry(kReduces, static_cast<uint8_t>(reduce)); }
const char* name(ElementType type) { return entry(kTypes, static_cast<uint8_t>(type)); }
const char* name(CallKind kind) { return entry(kKinds, static_cast<uint8_t>(kind)); }

std::string GroupCall::text() const {
  std::string text = fmt::format("{} {}", name(kind), sequence);
  if (is_message() || has_elements(kind)) {
    text += reduces(kind) ? fmt::format(": {} of", name(reduce)) : ":";
    text += fmt::format(" {} {}", count, name(type));
  } else if (kind == CallKind::arena) {
    text += fmt::format(": {} bytes", count);
  } else if (kind == CallKind::sub_group) {
    text += fmt::format(": ranks with hash {:x}", count);
  }
  if (root >= 0) text += fmt::format(", root {}", root);
  return text;
}

void check_same_call(const GroupCall& mine, const std::string& me, const GroupCall& other,
                     const std::string& them) {
  if (fits(mine, other)) [[likely]]
    return;
  fail<ConfigError>("ranks of a group must make the same calls in the same order, but ", me,
                    " makes ", mine.text(), " and ", them, " makes ", other.text());
}

}  // namespace argosy::comm
