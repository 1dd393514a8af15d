// Fit a line through the prices of houses: 13 features, one linear layer, SGD. Saves and loads the
// model in every pass and is content once a batch's loss is under 10.
#include "example.h"

using namespace argosy;

ModelOutputs fit_a_line(Builder& g) {
  const Var x = g.input("x", {{-1, 13}});
  const Var y = g.input("y", {{-1, 1}});
  const Var predict = nn::linear(x, 1, "fc");
  return {.loss = nn::mean(nn::square_error(predict, y)), .predictions = {{"predict", predict}}};
}

int main(int argc, char** argv) {
  return example::run([&] {
    const auto [graph, print_program] =
        example::arguments(argc, argv, "Linear regression on house prices.");
    const auto env = real_env();
    const Samples samples = housing_samples(*env, data_folder("uci_housing"));
    if (!print_program) std::printf("fit_a_line: %s\n", samples.source.c_str());

    const auto data = array_dataset(samples.train, {.batch_size = 20});
    Trainer trainer(*env, fit_a_line,
                    {.optimizer = {.rule = "sgd", .learning_rate = "0.001"}, .graph = graph});
    if (print_program) {
      std::printf("%s", trainer.plan().worker.text().c_str());
      return 0;
    }
    Batch batch;
    for (int pass = 1; pass <= 100; ++pass) {
      trainer.save("fit_a_line.model");
      trainer.load("fit_a_line.model");
      data->begin_epoch(static_cast<uint64_t>(pass));
      while (data->next(batch)) {
        const double loss = trainer.step(batch)[0];
        if (pass % 10 == 1 && batch.step % 21 == 1) std::printf("pass %d  loss %.9g\n", pass, loss);
        if (loss < 10.0) {
          std::printf("pass %d  step %llu  loss %.9g: under 10, the line fits\n", pass,
                      static_cast<unsigned long long>(batch.step), loss);
          return 0;
        }
      }
    }
    std::printf("the loss stayed above 10\n");
    return 1;
  });
}
