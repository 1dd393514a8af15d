// The CTR example of Paddle's Fleet, its distributed half, line by line: the environment says which
// process this is, servers serve and workers train. Without those variables, or with --is_local 1,
// the same program trains alone.
//
//   fleetrun --server_num=2 --worker_num=2 ctr_ps
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "example.h"

using namespace argosy;

namespace {

constexpr int64_t dense_feature_dim = 13;
constexpr uint64_t sparse_feature_dim = 1000001;
constexpr size_t batch_size = 100;
constexpr int64_t embedding_size = 10;

std::vector<std::string> sparse_input_names() {
  std::vector<std::string> names;
  for (int i = 1; i < 27; ++i) names.push_back("C" + std::to_string(i));
  return names;
}

/// network_conf.ctr_dnn_model_dataset
ModelOutputs ctr_dnn_model_dataset(Builder& g, int64_t layer_size) {
  const Var dense_input = g.input("dense_input", {{-1, dense_feature_dim}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var embeddings = nn::embedding(g, sparse_input_names(), "SparseFeatFactors", embedding_size,
                                       {.init = "uniform(-0.1, 0.1)"});
  Var hidden = nn::concat(std::array{embeddings, dense_input});
  for (int i = 0; i < 3; ++i) {
    const auto fan_in = static_cast<double>(hidden.shape()[-1]);
    hidden = nn::linear(
        hidden, layer_size, "fc" + std::to_string(i),
        {.activation = "relu", .weight_init = nn::init::normal(0, 1 / std::sqrt(fan_in))});
  }
  const Var scores = nn::linear(hidden, 2, "predict");
  const Var click = g.apply("slice", {nn::softmax(scores)},
                            {{"axes", std::vector<int64_t>{1}},
                             {"starts", std::vector<int64_t>{1}},
                             {"ends", std::vector<int64_t>{2}}});
  return {.loss = nn::softmax_loss(scores, label),
          .meters = {{"auc", "auc", click, label}},
          .predictions = {{"click", click}}};
}

struct Flags {
  std::string data = "ctr_data", model = "ctr_ps.model", mode = "async";
  int epochs = 2, layer = 400, is_local = 0;
  uint64_t rows = 20000;
};

Flags parse(int argc, char** argv) {
  Flags flags;
  example::Flags("The CTR example of Paddle's Fleet, by servers and workers.")
      .add("--mode", &flags.mode, "async, sync, half_async or geo (async)")
      .add("--epochs", &flags.epochs, "times through the data (2)")
      .add("--layer", &flags.layer, "units of each of the three layers (400)")
      .add("--data", &flags.data, "folder with MultiSlot lines in part-0, part-1, ... (ctr_data)")
      .add("--rows", &flags.rows, "lines to generate where the folder is missing (20000)")
      .add("--model", &flags.model, "where the first worker saves (ctr_ps.model)")
      .add("--is_local", &flags.is_local, "1: one process, without servers (0)")
      .parse(argc, argv);
  return flags;
}

DistributedStrategy strategy_for(const std::string& mode) {
  DistributedStrategy strategy;
  strategy.a_sync = mode != "sync";
  strategy.a_sync_configs.half_async = mode == "half_async";
  if (mode == "geo") strategy.a_sync_configs.k_steps = 20;
  check<ConfigError>(!strategy.a_sync || mode == "async" || mode == "half_async" || mode == "geo",
                     "--mode is '", mode, "', expected async, sync, half_async or geo");
  return strategy;
}

/// The first worker makes the data, where there are none; the others wait for it.
std::vector<std::string> file_list(Env& env, Fleet& fleet, const Flags& flags) {
  if (fleet.is_first_worker() && !std::filesystem::exists(flags.data)) {
    const CriteoReport made = generate_criteo(env, flags.data,
                                              {.rows = flags.rows,
                                               .vocab = 1000,
                                               .files = 4,
                                               .format = CriteoFormat::multislot,
                                               .hash = sparse_feature_dim});
    std::printf("%s was missing: generated %llu rows, best possible AUC %.4f\n", flags.data.c_str(),
                static_cast<unsigned long long>(flags.rows), made.bayes_auc);
  }
  fleet.barrier_worker();
  std::vector<std::string> whole;
  for (int x = 0; std::filesystem::exists(flags.data + "/part-" + std::to_string(x)); ++x)
    whole.push_back(flags.data + "/part-" + std::to_string(x));
  return fleet.util().get_file_shard(whole);
}

int train(Env& env, Fleet& fleet, const Flags& flags) {
  fleet.init_worker();
  DatasetDescription dataset = DatasetFactory::create_dataset();
  std::vector<SlotSpec> use_var = {data_var("dense_input", dense_feature_dim, "float32")};
  for (const std::string& name : sparse_input_names())
    use_var.push_back(data_var(name, 1, "int64"));
  use_var.push_back(data_var("label", 1, "int64"));
  dataset.set_use_var(use_var);
  dataset.set_batch_size(batch_size);
  dataset.set_filelist(file_list(env, fleet, flags));
  const auto data = dataset.make(fleet.trainer().plan().layout);

  double auc = 0;
  FitOptions fit{.epochs = flags.epochs, .show = nullptr};
  fit.join = [&](MetricTally& metrics) { fleet.join(metrics); };
  fit.on_epoch = [&](const Progress& epoch, const auto&) {
    auc = epoch.metric("auc");
    char line[128];
    std::snprintf(line, sizeof line, "epoch %d  loss %.6f  auc %.4f  %llu instances", epoch.epoch,
                  epoch.metric("loss"), auc, static_cast<unsigned long long>(epoch.samples));
    fleet.util().print_on_rank(line, 0);
    return Next::go_on;
  };
  fleet.trainer().fit(*data, fit);
  fleet.save_persistables(flags.model);
  fleet.util().print_on_rank("saved " + flags.model, 0);
  fleet.stop_worker();
  return auc > 0.5 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const Flags flags = parse(argc, argv);
    const auto env = real_env();
    Fleet fleet(*env);
    if (flags.is_local)
      fleet.init(Role{});
    else
      fleet.init();

    TrainerOptions options;
    options.tables = {{"SparseFeatFactors", {.size = sparse_feature_dim}}};
    fleet
        .distributed_optimizer({.rule = "adam", .learning_rate = "0.001"}, strategy_for(flags.mode))
        .minimize([&](Builder& g) { return ctr_dnn_model_dataset(g, flags.layer); }, options);

    if (!fleet.is_server()) return train(*env, fleet, flags);
    fleet.init_server();
    fleet.run_server();
    return 0;
  });
}
