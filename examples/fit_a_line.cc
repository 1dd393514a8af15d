// Fit a line through the prices of houses: 13 features, one linear layer, SGD. Saves and loads the
// model in every pass and is content once a batch's loss is under 10. By itself it trains alone; as
// a server and two trainers, in three terminals:
//
//   export PADDLE_PSERVER_IPS=127.0.0.1 PADDLE_PSERVER_PORT=6174 PADDLE_TRAINERS=2
//   PADDLE_TRAINING_ROLE=PSERVER PADDLE_CURRENT_IP=127.0.0.1 fit_a_line
//   PADDLE_TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=0 fit_a_line
//   PADDLE_TRAINING_ROLE=TRAINER PADDLE_TRAINER_ID=1 fit_a_line
#include "example.h"

using namespace argosy;

namespace {

constexpr const char* kModelDir = "fit_a_line.model";

ModelOutputs fit_a_line(Builder& g) {
  const Var x = g.input("x", {{-1, 13}});
  const Var y = g.input("y", {{-1, 1}});
  const Var predict = nn::linear(x, 1, "fc");
  return {.loss = nn::mean(nn::square_error(predict, y)), .predictions = {{"predict", predict}}};
}

/// Every `of`-th row, beginning with `first`: the houses of one trainer.
Feeds share(const Feeds& all, size_t first, size_t of) {
  Feeds result;
  for (const auto& [name, rows] : all) {
    const auto from = rows.as<float>();
    const auto width = static_cast<size_t>(rows.shape()[1]);
    std::vector<float> mine;
    for (size_t at = first * width; at < from.size(); at += of * width)
      mine.insert(mine.end(), from.begin() + static_cast<ptrdiff_t>(at),
                  from.begin() + static_cast<ptrdiff_t>(at + width));
    Tensor tensor({static_cast<int64_t>(mine.size() / width), rows.shape()[1]}, DType::f32);
    std::ranges::copy(mine, tensor.as<float>().begin());
    result[name] = tensor;
  }
  return result;
}

/// Ends the process in the middle of the loop when a batch's loss is low enough: its servers and
/// the other trainers need no word of that.
Next look_at(const Progress& progress) {
  const double loss = progress.metric("loss");
  const auto step = static_cast<unsigned long long>(progress.step);
  if (progress.epoch % 10 == 1 && progress.step == 1)
    std::printf("pass %d  loss %.9g\n", progress.epoch, loss);
  if (loss >= 10.0) return Next::go_on;
  std::printf("pass %d  step %llu  loss %.9g: under 10, the line fits\n", progress.epoch, step,
              loss);
  std::exit(0);
}

int train(Fleet& fleet, Dataset& data) {
  fleet.init_worker();
  const auto save_and_load = [&] {
    fleet.save_persistables(kModelDir);
    fleet.load_model(kModelDir);
  };
  save_and_load();
  FitOptions options{.epochs = 100, .on_step = look_at, .show = nullptr};
  options.on_epoch = [&](const Progress&, const auto&) {
    save_and_load();
    return Next::go_on;
  };
  fleet.trainer().fit(data, options);
  fleet.stop_worker();
  std::printf("the loss stayed above 10\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const auto [graph, print_program] =
        example::arguments(argc, argv, "Linear regression on house prices.");
    const auto env = real_env();
    Fleet fleet(*env);
    fleet.init();
    DistributedStrategy strategy;
    strategy.a_sync = false;
    fleet.distributed_optimizer({.rule = "sgd", .learning_rate = "0.001"}, strategy)
        .minimize(fit_a_line, {.graph = graph});
    if (fleet.is_server()) {
      fleet.init_server();
      fleet.run_server();
      return 0;
    }
    if (print_program) {
      std::printf("%s", fleet.trainer().plan().worker.text().c_str());
      return 0;
    }
    const Samples samples = housing_samples(*env, data_folder("uci_housing"));
    std::printf("fit_a_line: %s\n", samples.source.c_str());
    const auto data = array_dataset(share(samples.train, static_cast<size_t>(fleet.worker_index()),
                                          static_cast<size_t>(fleet.worker_num())),
                                    {.batch_size = 20});
    return train(fleet, *data);
  });
}
