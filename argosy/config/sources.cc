#include "argosy/config/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/data/file_list.h"
#include "argosy/samples/generate.h"
#include "argosy/samples/samples.h"

namespace argosy {
namespace {

constexpr uint64_t kTestShare = 10;  // training rows for one test row

/// The ids that tables with a declared size take, by slot.
void limit_ids(const Plan& plan, const TablesOptions& tables, std::vector<SlotSpec>& slots) {
  for (size_t i = 0; i < plan.tables.size(); ++i) {
    const auto options = tables.find(plan.tables[i].name);
    if (options == tables.end() || options->second.size == 0) continue;
    for (const IndexFeed& lookup : plan.layout.indices) {
      if (lookup.key_set != plan.key_sets[i]) continue;
      for (SlotSpec& slot : slots)
        if (std::ranges::find(lookup.slots, slot.name) != lookup.slots.end())
          slot.limit =
              slot.limit == 0 ? options->second.size : std::min(slot.limit, options->second.size);
    }
  }
}

uint64_t whole(const Call& call, const char* name, uint64_t otherwise) {
  const double value = call.number(SIZE_MAX, name, static_cast<double>(otherwise));
  check<ConfigError>(
      value >= 1 && value <= 1e15 && value == static_cast<double>(static_cast<uint64_t>(value)),
      "runner.generate: ", name, " must be a whole number of at least 1");
  return static_cast<uint64_t>(value);
}

/// Beside the parts of a generated folder: the best possible AUC. Hidden, so it is no part.
constexpr const char* kTruth = "/.best_auc";

void generate_folder(Env& env, const std::string& folder, const CriteoOptions& options,
                     std::FILE* log) {
  // Under another name until complete: an existing folder is taken for the requested data.
  std::string part = folder;
  while (part.ends_with('/')) part.pop_back();
  part += ".part";
  std::filesystem::remove_all(part);
  const CriteoReport report = generate_criteo(env, part, options);
  const std::string truth = fmt::format("{:.6f}\n", report.bayes_auc);
  write_file_atomically(env, part + kTruth, std::as_bytes(std::span(truth)));
  env.rename_file(part, folder);
  fmt::print(log, "{} was missing: generated {} rows with {} clicks, best possible AUC {:.4f}\n",
             folder, report.rows, report.clicks, report.bayes_auc);
  std::fflush(log);
}

/// The options in runner.generate.
CriteoOptions criteo_options(const Config& config) {
  const Call call(config.runner.generate);
  check<ConfigError>(call.name() == "criteo", "runner.generate: '", call.text(),
                     "', expected criteo(rows=..., vocab=..., seed=..., files=..., format=...)");
  call.expect("generate", 0, {"rows", "vocab", "seed", "files", "format", "test_rows"});
  CriteoOptions options;
  options.rows = whole(call, "rows", options.rows);
  options.vocab = whole(call, "vocab", options.vocab);
  options.seed = whole(call, "seed", options.seed);
  options.files = whole(call, "files", options.files);
  const std::string format = call.word("format", "raw");
  check<ConfigError>(format == "raw" || format == "multislot", "runner.generate: format ", format,
                     ", expected raw or multislot");
  options.format = format == "raw" ? CriteoFormat::raw : CriteoFormat::multislot;
  return options;
}

}  // namespace

void generate_if_missing(Env& env, const Config& config, std::FILE* log) {
  const std::string& folder = config.train.data_dir;
  if (config.runner.generate.empty() || folder.empty() || std::filesystem::exists(folder)) return;
  const CriteoOptions options = criteo_options(config);

  // The test data first, so that if the training folder exists, both do.
  const std::string& test_folder = config.infer.data_dir;
  if (!test_folder.empty() && !std::filesystem::exists(test_folder)) {
    CriteoOptions test = options;
    test.first_row = options.rows;
    test.rows = whole(Call(config.runner.generate), "test_rows",
                      std::max<uint64_t>(options.rows / kTestShare, 1));
    test.files = 1;
    generate_folder(env, test_folder, test, log);
  }
  generate_folder(env, folder, options, log);
}

uint64_t generated_files(const Config& config) { return criteo_options(config).files; }

std::optional<double> best_auc(Env& env, const std::string& folder) {
  const std::string path = folder + kTruth;
  if (!env.file_exists(path)) return std::nullopt;
  const std::vector<std::byte> bytes = env.read_file(path);
  double auc = 0;
  const char* const text = reinterpret_cast<const char*>(bytes.data());
  const auto [end, error] = std::from_chars(text, text + bytes.size(), auc);
  return error == std::errc() ? std::optional(auc) : std::nullopt;
}

bool reads_digits(const Reading& reading) { return reading.parser == "mnist"; }

std::string digits_folder(const Config& config) {
  const std::string& own = config.train.data_dir;
  return std::filesystem::is_directory(own) ? own : data_folder("mnist");
}

FileOptions file_options(const Config& config, const Reading& reading, const Plan& plan,
                         const TablesOptions& tables, int64_t batch_size) {
  const Runner& runner = config.runner;
  check<ConfigError>(!reading.data_dir.empty(), config.path, ": names no folder with data");
  FileOptions options;
  options.files = list_files(std::vector{reading.data_dir});
  options.parser = reading.parser;
  options.slots = config.inputs.columns;
  limit_ids(plan, tables, options.slots);
  options.pipe = {.command = reading.pipe_command, .directory = config.folder};
  options.batch_size = static_cast<size_t>(batch_size);
  // A deterministic run reads in the same order whatever num_workers and thread_num are.
  const int64_t threads = runner.reader_threads > 0 ? runner.reader_threads
                          : runner.deterministic    ? 1
                                                 : std::max(runner.num_workers, runner.thread_num);
  options.threads = static_cast<size_t>(threads);
  options.max_bad_ratio = runner.max_bad_ratio;
  options.audit = runner.audit;
  return options;
}

namespace {

bool drops_last(const Reading& reading) {
  return reading.type == "DataLoader" || reading.type == "RecDataset";
}

/// Images and labels under the names of the configuration's inputs; a label is a float, as files of
/// lines have it.
std::unique_ptr<Dataset> digits(const Config& config, const Feeds& samples,
                                const ArrayOptions& options) {
  const Tensor& classes = samples.at("label");
  Tensor labels(classes.shape());
  std::ranges::copy(classes.as<int64_t>(), labels.as<float>().begin());
  return array_dataset(
      {{config.inputs.dense, samples.at("x")}, {config.inputs.label, std::move(labels)}}, options);
}

bool keeps_in_memory(const Reading& reading, bool shuffle) {
  return reading.type == "InmemoryDataset" || shuffle;
}

std::unique_ptr<Dataset> make_data(const Reading& reading, FileOptions options, bool shuffle,
                                   const Plan& plan) {
  options.drop_last = drops_last(reading);
  if (keeps_in_memory(reading, shuffle))
    return std::make_unique<InMemoryDataset>(plan.layout, std::move(options), shuffle);
  return std::make_unique<QueueDataset>(plan.layout, std::move(options));
}

}  // namespace

bool streams(const Config& config) {
  return !reads_digits(config.train) && !keeps_in_memory(config.train, config.runner.shuffle);
}

std::unique_ptr<Dataset> make_train_data(Env& env, const Config& config, const Plan& plan,
                                         const TablesOptions& tables, const DealFiles& deal,
                                         const SourceOptions& source) {
  if (reads_digits(config.train)) {
    FileOptions none;
    if (deal) deal(none);  // there are no files: batches are dealt out
    return digits(config, mnist_samples(env, digits_folder(config)).train,
                  {.batch_size = static_cast<size_t>(config.runner.train_batch_size),
                   .shuffle = config.runner.shuffle,
                   .drop_last = drops_last(config.train)});
  }
  FileOptions options =
      file_options(config, config.train, plan, tables, config.runner.train_batch_size);
  if (deal) deal(options);
  options.source = source;
  return make_data(config.train, std::move(options), config.runner.shuffle, plan);
}

std::unique_ptr<Dataset> make_test_data(Env& env, const Config& config, const Plan& plan,
                                        const TablesOptions& tables, const SourceOptions& source) {
  if (reads_digits(config.infer))
    return digits(
        config, mnist_samples(env, digits_folder(config)).test,
        {.batch_size = static_cast<size_t>(config.runner.infer_batch_size), .shuffle = false});
  const std::string& folder = config.infer.data_dir;
  if (folder.empty() || !std::filesystem::exists(folder)) return nullptr;
  FileOptions options =
      file_options(config, config.infer, plan, tables, config.runner.infer_batch_size);
  options.source = source;
  return std::make_unique<QueueDataset>(plan.layout, std::move(options));
}

}  // namespace argosy
