// The CTR example of Paddle's Fleet, `python train.py --is_local 1`, line by line: 13 dense and 26
// sparse features, a data set that reads files through a pipe command, train_from_dataset with what
// to fetch. Run it from the top of the source tree, where the reader is.
#include <filesystem>

#include "example.h"

using namespace argosy;

namespace {

constexpr int64_t dense_feature_dim = 13;
constexpr uint64_t sparse_feature_dim = 10000001;
constexpr size_t batch_size = 100;
constexpr size_t thread_num = 2;  // 10 in the original
constexpr int64_t embedding_size = 10;

std::vector<std::string> sparse_input_names() {
  std::vector<std::string> names;
  for (int i = 1; i < 27; ++i) names.push_back("C" + std::to_string(i));
  return names;
}

/// network_conf.ctr_dnn_model_dataset
ModelOutputs ctr_dnn_model_dataset(Builder& g) {
  const Var dense_input = g.input("dense_input", {{-1, dense_feature_dim}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var embeddings = nn::embedding(g, sparse_input_names(), "SparseFeatFactors", embedding_size,
                                       {.init = "uniform(-1, 1)"});
  Var hidden = nn::concat(std::array{embeddings, dense_input});
  for (int i = 0; i < 3; ++i) {
    const auto fan_in = static_cast<double>(hidden.shape()[-1]);
    hidden = nn::linear(
        hidden, 400, "fc" + std::to_string(i),
        {.activation = "relu", .weight_init = nn::init::normal(0, 1 / std::sqrt(fan_in))});
  }
  const Var scores = nn::linear(hidden, 2, "predict");
  const Var click = g.apply("slice", {nn::softmax(scores)},
                            {{"axes", std::vector<int64_t>{1}},
                             {"starts", std::vector<int64_t>{1}},
                             {"ends", std::vector<int64_t>{2}}});
  // The original adds the cost up over the batch.
  const Var cost = g.apply_all("softmax_cross_entropy", std::array{scores, label})[0];
  return {.loss = nn::sum(cost),
          .metrics = {{"accuracy", nn::accuracy(scores, label)}},
          .meters = {{"auc", "auc", click, label}, {"batch_auc", "batch_auc", click, label}}};
}

struct Flags {
  std::string data = "raw_data";
  std::string reader = "python models/rank/dnn/benchmark_reader.py --hash";
  int epochs = 20;
};

Flags parse(int argc, char** argv) {
  Flags flags;
  example::Flags("The CTR example of Paddle's Fleet, on one machine.")
      .add("--data", &flags.data,
           "folder with raw Criteo rows in part-0, part-1, ...; generated if missing (raw_data)")
      .add("--reader", &flags.reader,
           "pipe command, gets the number of ids as its argument (the model zoo's)")
      .add("--epochs", &flags.epochs, "times through the data (20)")
      .parse(argc, argv);
  return flags;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const Flags flags = parse(argc, argv);
    const auto env = real_env();
    if (!std::filesystem::exists(flags.data)) {
      const CriteoReport made =
          generate_criteo(*env, flags.data, {.rows = 20000, .vocab = 1000, .files = 4});
      std::printf("%s was missing: generated 20000 rows, best possible AUC %.4f\n",
                  flags.data.c_str(), made.bayes_auc);
    }

    DatasetDescription dataset = DatasetFactory::create_dataset();
    std::vector<SlotSpec> use_var = {data_var("dense_input", dense_feature_dim, "float32")};
    for (const std::string& name : sparse_input_names())
      use_var.push_back(data_var(name, 1, "int64"));
    use_var.push_back(data_var("label", 1, "int64"));
    dataset.set_use_var(use_var);
    dataset.set_pipe_command(flags.reader + " " + std::to_string(sparse_feature_dim));
    dataset.set_batch_size(batch_size);
    dataset.set_thread(thread_num);
    std::vector<std::string> whole_filelist;
    for (int x = 0; std::filesystem::exists(flags.data + "/part-" + std::to_string(x)); ++x)
      whole_filelist.push_back(flags.data + "/part-" + std::to_string(x));
    dataset.set_filelist(whole_filelist);

    TrainerOptions options;
    options.optimizer = {.rule = "sgd", .learning_rate = "1e-4"};
    options.tables = {{"SparseFeatFactors", {.size = sparse_feature_dim}}};
    options.strategy.threads = thread_num;
    Trainer exe(*env, ctr_dnn_model_dataset, options);
    const auto data = dataset.make(exe.plan().layout);
    double auc = 0;
    for (int i = 0; i < flags.epochs; ++i) {
      const Progress epoch = train_from_dataset(
          exe, *data, {.fetch_list = {"auc"}, .fetch_info = {"auc"}, .print_period = 100});
      auc = epoch.metric("auc");
      std::printf("epoch %d  auc %.4f  %.0f instances/s\n", i, auc, epoch.samples_per_second());
    }
    return auc > 0.5 ? 0 : 1;
  });
}
