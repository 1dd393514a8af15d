#include "argosy/train/predictor.h"

#include <algorithm>

#include "argosy/base/error.h"
#include "argosy/train/saved_model.h"

namespace argosy {

Predictor::Predictor(Env& env, const std::string& dir)
    : Predictor(load_model(env, dir + "/inference.argosy"), dir + "/inference.argosy") {}

Predictor::Predictor(SavedModel model, const std::string& path)
    : executor_(Program::parse(model.program, path)), layout_(layout_of(executor_.program())) {
  for (NamedTensor& tensor : model.tensors)
    values_.emplace(std::move(tensor.name), std::move(tensor.value));
  for (const auto& [table, key_set] : layout_.key_sets) {
    const auto keys = values_.find(table + "@keys"), rows = values_.find(table);
    check<DataError>(keys != values_.end() && rows != values_.end() &&
                         keys->second.dtype() == DType::i64 && rows->second.dtype() == DType::f32 &&
                         rows->second.shape().rank() == 2 &&
                         rows->second.shape()[0] == keys->second.numel(),
                     path, ": has no rows with keys for the table '", table, "'");
    tables_[table] = {keys->second, rows->second};
    values_.erase(keys);
  }
}

Feeds Predictor::run(const Feeds& inputs) {
  for (const auto& [name, value] : inputs) values_.insert_or_assign(name, value);
  executor_.run(values_);
  Feeds outputs;
  for (VarId id : program().outputs) outputs.emplace(program().var(id).name, executor_.value(id));
  return outputs;
}

Feeds Predictor::run(const Batch& batch) {
  for (const auto& [table, stored] : tables_) {
    const std::vector<Key>& keys = batch.keys.at(layout_.key_sets.at(table));
    const auto known = stored.keys.as<int64_t>();
    const auto dim = static_cast<size_t>(stored.rows.shape()[1]);
    const auto before = [](int64_t a, Key b) { return static_cast<Key>(a) < b; };
    Tensor rows({static_cast<int64_t>(keys.size()), stored.rows.shape()[1]});
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto found = std::lower_bound(known.begin(), known.end(), keys[i], before);
      if (found == known.end() || static_cast<Key>(*found) != keys[i]) continue;
      const auto row = static_cast<size_t>(found - known.begin());
      std::copy_n(stored.rows.as<float>().begin() + static_cast<ptrdiff_t>(row * dim), dim,
                  rows.as<float>().begin() + static_cast<ptrdiff_t>(i * dim));
    }
    values_.insert_or_assign(table, std::move(rows));
  }
  return run(batch.feeds);
}

}  // namespace argosy
