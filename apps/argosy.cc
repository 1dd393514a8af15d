// argosy: the command line tool. One subcommand per function below.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

#include "argosy/argosy.h"
#include "bench/bench.h"

namespace {

using namespace argosy;

Program read_program(const std::string& path) {
  const auto env = real_env();
  const std::vector<std::byte> bytes = env->read_file(path);
  return Program::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, path);
}

/// Zeros of the declared shapes, with the unknown sizes set to `batch`.
Feeds placeholder_feeds(const Program& program, int64_t batch) {
  Feeds feeds;
  for (const VarDesc& desc : program.vars) {
    if (desc.kind == VarKind::temp) continue;
    Shape shape = desc.type.shape;
    for (int i = 0; i < shape.rank(); ++i)
      if (shape[i] == Shape::kAny) shape[i] = batch;
    feeds.emplace(desc.name, Tensor(shape, desc.type.dtype));
  }
  return feeds;
}

void print_memory(const Program& program, int64_t batch) {
  Executor executor(program);
  executor.prepare(placeholder_feeds(program, batch));
  const MemoryReport memory = executor.memory();
  fmt::print(
      "activations at batch {}: {} bytes planned, {} bytes required by liveness, ratio {:.3f}\n",
      batch, memory.planned, memory.required,
      memory.required > 0
          ? static_cast<double>(memory.planned) / static_cast<double>(memory.required)
          : 1.0);
  fmt::print("one buffer per variable would take {} bytes\n", memory.without_reuse);
}

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
  CLI::App app("argosy: distributed training of recommendation models");
  app.require_subcommand(1);
  app.set_version_flag("--version", ARGOSY_VERSION);

  std::string file;
  bool dot = false, memory = false, json = false;
  int64_t batch = 512;

  auto* graph = app.add_subcommand("graph", "Check a program text and print it, or draw it");
  graph->add_option("FILE", file, "program text (docs/formats/program-text.md)")->required();
  graph->add_flag("--dot", dot, "print Graphviz: argosy graph FILE --dot | dot -Tsvg > graph.svg");
  graph->callback([&] {
    const Program program = read_program(file);
    fmt::print("{}", dot ? program.dot() : program.text());
  });

  auto* plan = app.add_subcommand("plan", "Say what running a program text takes");
  plan->add_option("FILE", file, "program text")->required();
  plan->add_flag("--memory", memory, "memory of its activations")->required();
  plan->add_option("--batch", batch, "size of the dimensions left open in the text")
      ->capture_default_str();
  plan->callback([&] { print_memory(read_program(file), batch); });

  auto* bench =
      app.add_subcommand("bench", "Measure; each benchmark prints its own limit beside it");
  bench->require_subcommand(1);
  const std::map<std::string, Bench> benches = all_benches();
  std::map<std::string, BenchFlags> flags;
  for (const auto& [name, entry] : benches) {
    auto* one = bench->add_subcommand(name, entry.help);
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
  } catch (const Error& e) {
    fmt::print(stderr, "argosy: {}\n", e.what());
    return 1;
  }
}
