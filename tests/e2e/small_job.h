#pragma once

#include <string>

namespace argosy::e2e {

/// A small CTR model on generated clicks, which trains in a second or two. `runner`: lines to add,
/// indented by two.
inline std::string small_job(int rows, int files, const std::string& runner) {
  return R"(model: dnn
runner:
  train_data_dir: train
  generate: 'criteo(vocab=50, seed=3, rows=)" +
         std::to_string(rows) + ", files=" + std::to_string(files) + R"()'
  reader: criteo
  train_batch_size: 50
  split_file_list: True
  model_save_path: model
)" + runner +
         R"(hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.005}
  sparse_feature_number: 100001
  sparse_feature_dim: 4
  fc_sizes: [16, 8]
)";
}

}  // namespace argosy::e2e
