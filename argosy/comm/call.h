#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace argosy::comm {

enum class Reduce : uint8_t { sum, avg, max, min, prod };

/// Types of elements that a group adds and compares.
enum class ElementType : uint8_t { f32, f64, i32, i64 };
size_t size_of(ElementType type);

enum class CallKind : uint8_t {
  all_reduce,
  reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  scatter,
  all_to_all,
  barrier,
  send,
  receive,
  arena,
  sub_group,
};

/// A rank's description of its call. It is sent ahead of all data, so that ranks notice when their
/// calls differ.
struct GroupCall {
  uint64_t sequence = 0;  // among the calls of the group, or of a pair for send and receive
  uint64_t count = 0;     // of elements
  int32_t root = -1;      // -1: there is none
  CallKind kind = CallKind::barrier;
  ElementType type = ElementType::f32;
  Reduce reduce = Reduce::sum;
  uint8_t reserved = 0;

  /// The part of the call that the backend performs now, perhaps all of it.
  struct Step {
    int32_t root = -1;  // numbered among the ranks of the step
    CallKind kind = CallKind::barrier;
    Reduce reduce = Reduce::sum;
    uint16_t reserved = 0;
    bool operator==(const Step&) const = default;
  };
  Step step = {};

  bool operator==(const GroupCall&) const = default;
  /// Point to point.
  bool is_message() const { return kind == CallKind::send || kind == CallKind::receive; }
  /// "all_reduce 12: sum of 300 f32".
  std::string text() const;
};
static_assert(sizeof(GroupCall) == 32);

const char* name(Reduce reduce);
const char* name(ElementType type);
const char* name(CallKind kind);

/// Throws ConfigError that shows both, unless they are the same, or a send and its receive.
void check_same_call(const GroupCall& mine, const std::string& me, const GroupCall& other,
                     const std::string& them);

}  // namespace argosy::comm
