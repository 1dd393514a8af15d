#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace argosy::ps {

/// Who gets a row of a sparse table. Until a key is admitted its pulls give zeros and its pushes
/// are ignored:
///   ""                 every key at once
///   count_filter(n)    a key that has occurred n times; 0 and 1 admit every key
///   probability(p)     a share p of all keys, 0 < p < 1, chosen by (seed, table, key): a key is in
///                      or out for good, on any server and after any restart. (Paddle draws again
///                      at each pull, so there every frequent key comes in sooner or later, and its
///                      p is the share kept out.)
///   show_click(a, b)   every key, and each row adds up show and click over all occurrences of its
///                      key: the inputs of these names have one number for each instance
class Entry {
 public:
  enum class Kind : uint8_t { always, count_filter, probability, show_click };

  /// Throws ConfigError that quotes the text and lists the known names.
  explicit Entry(std::string_view text);

  Kind kind() const { return kind_; }
  uint32_t count() const { return count_; }            // of count_filter, at least 2
  double probability() const { return probability_; }  // of probability
  // Of show_click:
  const std::string& show() const { return show_; }
  const std::string& click() const { return click_; }

 private:
  Kind kind_ = Kind::always;
  uint32_t count_ = 0;
  double probability_ = 1;
  std::string show_, click_;
};

}  // namespace argosy::ps
