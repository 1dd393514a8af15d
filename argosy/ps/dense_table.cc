#include "argosy/ps/dense_table.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <new>

#include "argosy/base/error.h"

namespace argosy {
namespace {

TableSpec checked(TableSpec spec) {
  check<ConfigError>(spec.dim > 0, "table '", spec.name, "': dim is 0, expected at least 1");
  check<ConfigError>(spec.elements > 0, "table '", spec.name,
                     "': elements is 0, expected at least 1 for a dense parameter");
  if (spec.of == 0) spec.of = spec.elements;
  check<ConfigError>(spec.first + spec.elements <= spec.of, "table '", spec.name, "': elements ",
                     spec.first, " to ", spec.first + spec.elements, " of only ", spec.of);
  return spec;
}

}  // namespace

DenseTable::DenseTable(TableSpec spec)
    : spec_(checked(std::move(spec))),
      rule_(make_rule(spec_.rule)),
      schedule_(spec_.learning_rate),
      policy_(spec_.regularizer, spec_.clip),
      blocks_((spec_.elements - 1) / spec_.dim + 1),
      state_per_block_(rule_->state_size(std::min(spec_.dim, spec_.elements))),
      state_size_((blocks_ - 1) * state_per_block_ +
                  rule_->state_size(spec_.elements - (blocks_ - 1) * spec_.dim)),
      weights_(aligned_floats(spec_.elements)),
      state_(aligned_floats(state_size_)) {
  check<ConfigError>(!rule_->whole_parameter() || (blocks_ == 1 && spec_.elements == spec_.of),
                     "rule '", spec_.rule, "' needs parameter '", spec_.name,
                     "' in one block: dim is ", spec_.dim, ", expected at least ", spec_.of);
  const Initializer initializer(spec_.init);
  check<ConfigError>(initializer.size().value_or(spec_.of) == spec_.of, "'", spec_.init,
                     "': parameter '", spec_.name, "' has ", spec_.of, " elements");
  initializer.fill(weights(), parameter_stream(spec_.seed, spec_.name), spec_.first);
  for (Key key = 0; key < blocks_; ++key) rule_->init(block(key).state);
  if (policy_.active()) scratch_.resize(block(0).weights.size());
}

void DenseTable::pull(std::span<const Key> keys, std::span<float> rows) {
  check_rows(keys, rows.size());
  const Lock lock(mutex_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::span<float> row = rows.subspan(i * spec_.dim, spec_.dim);
    const auto end = std::ranges::copy(block(keys[i]).weights, row.begin()).out;
    std::fill(end, row.end(), 0.0F);
  }
}

void DenseTable::push(std::span<const Key> keys, std::span<const float> grads, uint64_t step) {
  check_rows(keys, grads.size());
  const Update now = update(step);
  const Lock lock(mutex_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const Block target = block(keys[i]);
    apply(target, grads.subspan(i * spec_.dim, target.weights.size()), now);
  }
}

void DenseTable::push_all(std::span<const float> grads, uint64_t step) {
  check<DataError>(grads.size() == spec_.elements, "table '", spec_.name, "': got ", grads.size(),
                   " gradients, expected ", spec_.elements);
  const Update now = update(step);
  const Lock lock(mutex_);
  for (Key key = 0; key < blocks_; ++key) {
    const Block target = block(key);
    apply(target, grads.subspan(key * spec_.dim, target.weights.size()), now);
  }
}

void DenseTable::pull_all(std::span<float> weights) const {
  check<DataError>(weights.size() == spec_.elements, "table '", spec_.name, "': ", weights.size(),
                   " floats asked for, it has ", spec_.elements);
  const Lock lock(mutex_);
  std::copy_n(weights_.get(), spec_.elements, weights.begin());
}

void DenseTable::assign_all(std::span<const float> weights) {
  check<DataError>(weights.size() == spec_.elements, "table '", spec_.name, "': ", weights.size(),
                   " floats to assign, it has ", spec_.elements);
  const Lock lock(mutex_);
  std::ranges::copy(weights, weights_.get());
}

void DenseTable::copy_out(std::span<float> weights, std::span<float> state) const {
  assert(weights.size() == spec_.elements && state.size() == state_size_);
  const Lock lock(mutex_);
  std::copy_n(weights_.get(), spec_.elements, weights.begin());
  std::copy_n(state_.get(), state_size_, state.begin());
}

void DenseTable::copy_in(std::span<const float> weights, std::span<const float> state) {
  check<DataError>(weights.size() == spec_.elements && state.size() == state_size_, "table '",
                   spec_.name, "': ", weights.size(), " weights and a state of ", state.size(),
                   ", expected ", spec_.elements, " and ", state_size_);
  const Lock lock(mutex_);
  std::ranges::copy(weights, weights_.get());
  std::ranges::copy(state, state_.get());
}

void DenseTable::assign(std::span<const Key> keys, std::span<const float> rows) {
  check_rows(keys, rows.size());
  const Lock lock(mutex_);
  for (size_t i = 0; i < keys.size(); ++i) {
    const std::span<float> target = block(keys[i]).weights;
    std::ranges::copy(rows.subspan(i * spec_.dim, target.size()), target.begin());
  }
}

void DenseTable::save(ByteSink& out) const {
  std::vector<float> values(spec_.elements + state_size_);
  {
    const Lock lock(mutex_);
    std::copy_n(weights_.get(), spec_.elements, values.begin());
    std::copy_n(state_.get(), state_size_, values.begin() + static_cast<ptrdiff_t>(spec_.elements));
  }
  out.put<uint64_t>(spec_.elements);
  out.put<uint64_t>(spec_.dim);
  out.put<uint64_t>(state_size_);
  out.put_all(std::span<const float>(values));
}

void DenseTable::load(ByteSource& in) {
  constexpr size_t kHeader = 3 * sizeof(uint64_t);
  check<DataError>(in.left() >= kHeader, "table '", spec_.name, "': ", in.what(), " ends early, ",
                   kHeader, " bytes expected and ", in.left(), " left");
  const auto elements = in.get<uint64_t>(), dim = in.get<uint64_t>(), states = in.get<uint64_t>();
  check<DataError>(elements == spec_.elements && dim == spec_.dim && states == state_size_,
                   "table '", spec_.name, "': ", in.what(), " holds ", elements,
                   " elements in blocks of ", dim, " with a state of ", states, ", expected ",
                   spec_.elements, " in blocks of ", spec_.dim, " with a state of ", state_size_);
  const size_t bytes = (spec_.elements + state_size_) * sizeof(float);
  check<DataError>(in.left() >= bytes, "table '", spec_.name, "': ", in.what(), " ends early, ",
                   bytes, " bytes expected and ", in.left(), " left");
  const Lock lock(mutex_);
  in.get_all(weights());
  in.get_all(state());
}

DenseTable::Floats DenseTable::aligned_floats(size_t n) {
  constexpr size_t kAlignment = 64;  // bytes: a cache line, and the widest vector
  const size_t bytes = (n * sizeof(float) / kAlignment + 1) * kAlignment;
  Floats floats(static_cast<float*>(std::aligned_alloc(kAlignment, bytes)),
                [](float* p) { std::free(p); });
  if (floats == nullptr) throw std::bad_alloc();
  std::fill_n(floats.get(), n, 0.0F);
  return floats;
}

DenseTable::Block DenseTable::block(Key key) const {
  const size_t first = key * spec_.dim;
  const size_t size = std::min(spec_.dim, spec_.elements - first);
  return {.weights = {weights_.get() + first, size},
          .state = {state_.get() + key * state_per_block_, rule_->state_size(size)}};
}

void DenseTable::check_rows(std::span<const Key> keys, size_t floats) const {
  check<DataError>(floats == keys.size() * spec_.dim, "table '", spec_.name, "': ", keys.size(),
                   " keys with ", floats, " floats, expected ", keys.size() * spec_.dim);
  for (const Key key : keys) {
    check<DataError>(key < blocks_, "table '", spec_.name, "': no block ", key, ", there are ",
                     blocks_);
  }
}

Update DenseTable::update(uint64_t step) const {
  check<DataError>(step > 0, "table '", spec_.name, "': step 0, but the first step is 1");
  return {.lr = schedule_.rate(step), .step = step};
}

void DenseTable::apply(const Block& block, std::span<const float> grad, const Update& update) {
  if (policy_.active()) {
    std::ranges::copy(grad, scratch_.begin());
    const auto changed = std::span(scratch_).first(grad.size());
    policy_.apply(block.weights, changed);
    grad = changed;
  }
  rule_->apply(block.weights, block.state, grad, update);
}

}  // namespace argosy
