#include "argosy/modes/merged.h"

namespace argosy {

void Merged::add(const ps::Exchange& one) {
  if (dense_.empty()) {
    for (const auto& grad : one.dense) dense_.emplace_back(grad.begin(), grad.end());
  } else {
    for (size_t i = 0; i < dense_.size(); ++i)
      for (size_t j = 0; j < dense_[i].size(); ++j) dense_[i][j] += one.dense[i][j];
  }
  for (const ps::Exchange::Push& push : one.pushes) {
    Part& part = parts_.emplace_back();
    part.lists = push.lists;
    for (const auto& grad : push.grads) part.grads.emplace_back(grad.begin(), grad.end());
  }
  trained_ = std::max(trained_, one.trained);
  ++batches_;
}

void Merged::put_into(ps::Exchange& exchange) const {
  for (const auto& grad : dense_) exchange.dense.emplace_back(grad);
  for (const Part& part : parts_)
    exchange.pushes.push_back({part.lists, {part.grads.begin(), part.grads.end()}});
  exchange.trained = std::max(exchange.trained, trained_);
}

void Merged::clear() {
  dense_.clear();
  parts_.clear();
  trained_ = {};
  batches_ = 0;
}

}  // namespace argosy
