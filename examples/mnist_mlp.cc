// Handwritten digits with two hidden layers: 784-128-128-10, tanh, Adam.
#include "example.h"

using namespace argosy;

ModelOutputs mnist_mlp(Builder& g) {
  const Var x = g.input("x", {{-1, 784}});
  const Var label = g.input("label", {{-1, 1}, DType::i64});
  const Var hidden = nn::mlp(x, std::array<int64_t, 2>{128, 128}, "tanh", "hidden");
  const Var logits = nn::linear(hidden, 10, "scores");
  return {.loss = nn::softmax_loss(logits, label),
          .metrics = {{"acc", nn::accuracy(logits, label)}},
          .predictions = {{"probability", nn::softmax(logits)}}};
}

int main(int argc, char** argv) {
  return example::run([&] {
    const auto [graph, print_program] =
        example::arguments(argc, argv, "A multi-layer perceptron on MNIST.");
    const auto env = real_env();
    const Samples samples = mnist_samples(*env, data_folder("mnist"));
    if (!print_program) std::printf("mnist_mlp: %s\n", samples.source.c_str());

    const auto train = array_dataset(samples.train, {.batch_size = 64, .drop_last = true});
    const auto test = array_dataset(samples.test, {.batch_size = 500, .shuffle = false});
    Trainer trainer(*env, mnist_mlp,
                    {.optimizer = {.rule = "adam", .learning_rate = "0.001"}, .graph = graph});
    if (print_program) {
      std::printf("%s", trainer.plan().worker.text().c_str());
      return 0;
    }
    double accuracy = 0;
    trainer.fit(*train, {.epochs = 5,
                         .test = test.get(),
                         .on_epoch = [&](const Progress& progress, const auto& result) {
                           accuracy = result[1].value;
                           std::printf(
                               "epoch %d  train loss %.9g  test loss %.9g  test accuracy %.4f\n",
                               progress.epoch, progress.metric("loss"), result[0].value, accuracy);
                           return Next::go_on;
                         }});
    trainer.export_inference("mnist_mlp.model");

    // The exported model answers like the trained one.
    Predictor predictor(*env, "mnist_mlp.model");
    const Tensor& x = samples.test.at("x");
    const Tensor first = Tensor::wrap(const_cast<std::byte*>(x.data()), {1, 784}, DType::f32);
    const Feeds answer = predictor.run({{"x", first}});
    const auto probability = answer.at("probability").as<float>();
    const auto best = std::ranges::max_element(probability) - probability.begin();
    std::printf(
        "exported to mnist_mlp.model; the first test image is a %lld with probability %.4f (label "
        "%lld)\n",
        static_cast<long long>(best), static_cast<double>(probability[static_cast<size_t>(best)]),
        static_cast<long long>(samples.test.at("label").as<int64_t>()[0]));
    return accuracy >= 0.9 ? 0 : 1;
  });
}
