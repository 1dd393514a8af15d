// Handwritten digits by one process or by ranks that train together, 784-128-128-10, tanh, Adam:
//   mnist_collective
//   fleetrun --nproc_per_node=2 mnist_collective
#include "example.h"

using namespace argosy;

namespace {

constexpr uint64_t kPrintEvery = 200;  // steps

ModelOutputs mnist(Builder& g) {
  const Var x = g.input("x", {{-1, 784}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{128, 128}, "tanh", "fc");
  const Var logits = nn::linear(hidden, 10, "prediction");
  return {.loss = nn::softmax_loss(logits, label),
          .metrics = {{"acc", nn::accuracy(logits, label)}}};
}

/// As Paddle's data set has them: 0 to 255.
void make_raw(Tensor& pixels) {
  for (float& value : pixels.as<float>()) value *= 255;
}

struct Settings {
  GraphMode graph = GraphMode::recorded;
  bool raw = false;  // unscaled pixels and Adam 0.01, which learn badly
  int epochs = 5;
};

Settings settings(int argc, char** argv) {
  Settings result;
  bool dynamic = false;
  example::Flags("Handwritten digits by one process, or by the ranks that fleetrun starts.")
      .add("--dynamic", &dynamic,
           "run the model line by line instead of recording it (same losses)")
      .add("--raw", &result.raw, "pixels from 0 to 255 and Adam 0.01, which learn badly")
      .add("--epochs", &result.epochs, "times through the images (5)")
      .parse(argc, argv);
  if (dynamic) result.graph = GraphMode::eager;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  return example::run([&] {
    const Settings own = settings(argc, argv);
    const auto env = real_env();
    Samples samples = mnist_samples(*env, data_folder("mnist"));
    if (own.raw)
      for (Feeds* feeds : {&samples.train, &samples.test}) make_raw(feeds->at("x"));

    Fleet fleet(*env);
    fleet.init(is_collective);
    fleet.distributed_optimizer({.rule = "adam", .learning_rate = own.raw ? "0.01" : "0.001"})
        .minimize(mnist, {.graph = own.graph});
    const Share share{static_cast<size_t>(fleet.worker_index()),
                      static_cast<size_t>(fleet.worker_num())};
    const auto train =
        array_dataset(samples.train, {.batch_size = 64, .drop_last = true, .share = share});
    const auto test = array_dataset(samples.test, {.batch_size = 500, .shuffle = false});
    Trainer& trainer = fleet.trainer();
    fleet.util().print_on_rank("mnist_collective: " + samples.source, 0);

    // Sums the times of the printed steps only.
    double before = 0, total = 0;
    const auto tell = [&](const Progress& progress) {
      if (progress.step == 1) before = total = 0;
      const double seconds = progress.seconds - std::exchange(before, progress.seconds);
      if (progress.step % kPrintEvery != 0) return Next::go_on;
      total += seconds;
      std::printf("epoch: %d, step:%llu, train_loss: %f, total time cost = %f, speed: %f\n",
                  progress.epoch - 1, static_cast<unsigned long long>(progress.step),
                  progress.metric("loss"), total, 1 / seconds);
      std::fflush(stdout);
      return Next::go_on;
    };
    trainer.fit(*train, {.epochs = own.epochs,
                         .on_step = tell,
                         .join = [&](MetricTally& metrics) { fleet.join(metrics); },
                         .show = nullptr});
    const double accuracy = trainer.evaluate(*test)[1].value;
    fleet.stop_worker();
    std::printf("rank %d of %d: test accuracy %.4f\n", fleet.worker_index(), fleet.worker_num(),
                accuracy);
    return own.raw || accuracy >= 0.9 ? 0 : 1;
  });
}
