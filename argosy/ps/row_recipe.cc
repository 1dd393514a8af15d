#include "argosy/ps/row_recipe.h"

#include <algorithm>
#include <limits>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"

namespace argosy::ps {
namespace {

TableSpec checked(TableSpec spec) {
  check<ConfigError>(spec.dim > 0, "table '", spec.name, "': dim is 0, expected at least 1");
  return spec;
}

}  // namespace

RowRecipe::RowRecipe(TableSpec spec)
    : spec_(checked(std::move(spec))),
      rule_(make_rule(spec_.rule)),
      schedule_(spec_.learning_rate),
      policy_(spec_.regularizer, spec_.clip),
      initializer_(spec_.init),
      entry_(spec_.entry),
      row_seed_(parameter_stream(spec_.seed, spec_.name).bits(0)),
      entry_seed_(parameter_stream(spec_.seed, spec_.name).bits(1)),
      state_size_(rule_->state_size(spec_.dim)),
      scores_at_(spec_.track_unseen ? 1 : 0),
      weights_at_(scores_at_ + (scores_rows() ? 2 : 0)) {
  check<ConfigError>(!rule_->whole_parameter(), "rule '", spec_.rule,
                     "' needs the norm of a whole parameter: table '", spec_.name,
                     "' is sparse and has rows");
  check<ConfigError>(initializer_.size().value_or(spec_.dim) == spec_.dim, "'", spec_.init,
                     "': a row of table '", spec_.name, "' has ", spec_.dim, " elements");
}

size_t RowRecipe::floats(Section section) const {
  if (section == Section::rows) return weights_at_ + spec_.dim + state_size_;
  return counts_keys() ? 1 + (spec_.track_unseen ? 1 : 0) : 0;
}

bool RowRecipe::admits(Key key, float count) const {
  switch (entry_.kind()) {
    case Entry::Kind::count_filter:
      return count >= static_cast<float>(entry_.count());
    case Entry::Kind::probability:
      return RandomStream(entry_seed_, key).uniform(0) < entry_.probability();
    case Entry::Kind::always:
    case Entry::Kind::show_click:
      break;
  }
  return true;
}

void RowRecipe::first_weights(Key key, std::span<float> weights) const {
  initializer_.fill(weights, RandomStream(row_seed_, key));
}

void RowRecipe::make_row(Key key, float* image) const {
  first_weights(key, {image + weights_at_, spec_.dim});
  renew_state(image);
}

void RowRecipe::renew_state(float* image) const {
  rule_->init({image + weights_at_ + spec_.dim, state_size_});
}

Update RowRecipe::update_of(uint64_t step) const {
  check<DataError>(step > 0, "table '", spec_.name, "': step 0, but the first step is 1");
  return {.lr = schedule_.rate(step), .step = step};
}

void RowRecipe::apply(std::span<RowStep> rows, const Update& update,
                      std::vector<float>& scratch) const {
  if (policy_.active()) {
    scratch.resize(std::max(scratch.size(), rows.size() * spec_.dim));
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto grad = std::span(scratch).subspan(i * spec_.dim, spec_.dim);
      std::copy_n(rows[i].grad, spec_.dim, grad.begin());
      policy_.apply({rows[i].weights, spec_.dim}, grad);
      rows[i].grad = grad.data();
    }
  }
  rule_->apply_rows(rows, spec_.dim, update);
}

void RowRecipe::check_rows(std::span<const Key> keys, size_t floats) const {
  check<DataError>(floats == keys.size() * spec_.dim, "table '", spec_.name, "': ", keys.size(),
                   " keys with ", floats, " floats, expected ", keys.size() * spec_.dim);
  check<DataError>(keys.size() <= std::numeric_limits<uint32_t>::max(), "table '", spec_.name,
                   "': ", keys.size(), " keys in one call, expected fewer than 2^32");
}

void RowRecipe::check_column(std::span<const Key> keys, size_t values, const char* name) const {
  check<DataError>(values == 0 || values == keys.size(), "table '", spec_.name, "': ", keys.size(),
                   " keys with ", values, " values of column ", name);
}

}  // namespace argosy::ps
