// argosy-bench: what `argosy bench` runs. One subcommand per file of bench/.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "bench/bench.h"

namespace {

using namespace argosy;

void print_results(const std::string& name, const BenchResults& results, bool json) {
  if (json) {
    fmt::print("{{\"bench\": \"{}\"", name);
    for (const auto& [key, value] : results) fmt::print(", \"{}\": {:.6g}", key, value);
    fmt::print("}}\n");
    return;
  }
  for (const auto& [key, value] : results) fmt::print("{:<28} {:>14.6g}\n", key, value);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Measure; each benchmark prints its own limit beside it");
  app.require_subcommand(1);
  bool json = false;
  const std::map<std::string, Bench> benches = all_benches();
  std::map<std::string, BenchFlags> flags;
  for (const auto& [name, entry] : benches) {
    auto* one = app.add_subcommand(name, entry.help);
    flags[name] = entry.flags;
    for (auto& [flag, value] : flags[name])
      one->add_option("--" + flag, value)->capture_default_str();
    one->add_flag("--json", json, "one line of JSON");
    one->callback(
        [&, name = name] { print_results(name, benches.at(name).run(flags.at(name)), json); });
  }

  try {
    app.parse(argc, argv);
    return 0;
  } catch (const CLI::ParseError& e) {
    return app.exit(e);
  } catch (const std::exception& e) {  // an Error, or what the standard library throws
    fmt::print(stderr, "argosy: {}\n", e.what());
    return 1;
  }
}
