#include "argosy/train/train_from_dataset.h"

#include <fmt/format.h>

#include <algorithm>

#include "argosy/base/error.h"

namespace argosy {

Progress train_from_dataset(Trainer& trainer, Dataset& data, const FetchOptions& options) {
  check<ConfigError>(
      options.fetch_info.empty() || options.fetch_info.size() == options.fetch_list.size(),
      "fetch_info names ", options.fetch_info.size(), " metrics, fetch_list ",
      options.fetch_list.size());
  const std::vector<std::string>& known = trainer.metric_names();
  for (const std::string& name : options.fetch_list)
    check<ConfigError>(std::ranges::find(known, name) != known.end(),
                       "fetch_list: the model has no metric '", name, "', it has ",
                       fmt::format("{}", fmt::join(known, ", ")));
  const auto print = [&](const std::string& line) {
    if (options.print) return options.print(line);
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  FitOptions fit;
  fit.show = nullptr;
  fit.on_step_every = options.print_period;
  fit.on_step = [&](const Progress& progress) {
    for (size_t i = 0; i < options.fetch_list.size(); ++i) {
      const std::string& name = options.fetch_list[i];
      print(fmt::format("step {}\t{}\t{:.6f}", progress.step,
                        options.fetch_info.empty() ? name : options.fetch_info[i],
                        progress.metric(name)));
    }
    return Next::go_on;
  };
  fit.observers = options.observers;
  Progress last = trainer.fit(data, fit);
  for (const std::string& note : data.notes()) print(note);
  if (options.debug)
    print(fmt::format("{} steps, mean read time: {:.6f}s, IO percent: {:.2f}, {:.2f} instances/s",
                      last.step, last.reading / static_cast<double>(last.step),
                      100 * last.reading / last.seconds, last.samples_per_second()));
  return last;
}

}  // namespace argosy
