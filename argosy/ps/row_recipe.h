#pragma once

#include <memory>
#include <span>
#include <vector>

#include "argosy/base/key.h"
#include "argosy/ps/entry.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/initializer.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"
#include "argosy/ps/specs.h"

namespace argosy::ps {

/// The two halves of a table: rows, and keys still counted towards their admission.
enum class Section : uint8_t { rows, counted };

/// How the rows of a table are laid out, made and changed, wherever they lie. An image of a row is
/// its unseen count if that is tracked, show and click if the entry scores, weights, optimizer
/// state; of a counted key its count, then its unseen count. Immutable, so thread-safe.
class RowRecipe {
 public:
  /// Throws ConfigError.
  explicit RowRecipe(TableSpec spec);

  const TableSpec& spec() const { return spec_; }
  size_t dim() const { return spec_.dim; }
  size_t floats(Section section) const;  // of an image; 0: there are none
  size_t weights_at() const { return weights_at_; }
  bool counts_keys() const { return entry_.kind() == Entry::Kind::count_filter; }
  bool scores_rows() const { return entry_.kind() == Entry::Kind::show_click; }
  bool tracks_unseen() const { return spec_.track_unseen; }

  /// Whether a key that has occurred `count` times gets a row.
  bool admits(Key key, float count) const;
  void first_weights(Key key, std::span<float> weights) const;
  /// `image` is zeroed.
  void make_row(Key key, float* image) const;
  /// Resets the optimizer state, for a row that was saved without one.
  void renew_state(float* image) const;

  void mark_used(float* image) const {
    if (spec_.track_unseen) image[0] = 0;
  }
  void add_scores(float* image, float show, float click) const {
    image[scores_at_] += show;
    image[scores_at_ + 1] += click;
  }
  /// Adds one to the unseen count and returns it.
  float age(Section section, float* image) const {
    return image[section == Section::rows ? 0 : 1] += 1;
  }
  struct Scores {
    float show, click;
  };
  Scores scores(const float* image) const { return {image[scores_at_], image[scores_at_ + 1]}; }

  /// Throws DataError for step 0.
  Update update_of(uint64_t step) const;
  /// One rule step per row. `scratch` is reused from call to call.
  void apply(std::span<RowStep> rows, const Update& update, std::vector<float>& scratch) const;

  /// Throw DataError unless the floats, or the values of a column, fit the keys.
  void check_rows(std::span<const Key> keys, size_t floats) const;
  void check_column(std::span<const Key> keys, size_t values, const char* name) const;

 private:
  TableSpec spec_;
  std::unique_ptr<Rule> rule_;
  Schedule schedule_;
  GradientPolicy policy_;
  Initializer initializer_;
  Entry entry_;
  uint64_t row_seed_, entry_seed_;
  size_t state_size_;
  size_t scores_at_, weights_at_;
};

}  // namespace argosy::ps
