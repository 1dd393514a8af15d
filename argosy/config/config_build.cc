#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

#include "argosy/config/config_parts.h"
#include "argosy/data/parser.h"

namespace argosy {
namespace {

constexpr std::array<std::string_view, 9> kSections = {
    "runner", "hyper_parameters", "model", "workspace", "inputs",
    "tables", "network",          "loss",  "metrics"};
constexpr const char* kDigits = "mnist";  // a reader of no lines
constexpr int64_t kIds = 1000001;         // PaddleRec's sparse_feature_number

void check_sections(const Setting& root) {
  for (const Setting& section : root.items) {
    if (std::ranges::find(kSections, section.key()) != kSections.end()) continue;
    if (section.key() == "table_parameters")
      fail_at(section, "refused: PaddleRec's accessors are not read; tables sets rule, ",
              "learning_rate, entry and size of each table");
    const bool in_runner = std::ranges::find(runner_keys(), section.key(),
                                             &ConfigKey<Runner>::name) != runner_keys().end();
    check<ConfigError>(!in_runner, section.at, ": unknown key ", section.name,
                       ", did you mean runner.", section.name, "?");
    fail_unknown_key(section, {kSections.begin(), kSections.end()});
  }
}

/// A section's setting; null if it is missing or empty.
const Setting* section(const Setting& root, std::string_view name) {
  const Setting* const setting = root.find(name);
  return setting != nullptr && setting->given() ? setting : nullptr;
}

const Setting* runner_setting(const Setting& root, std::string_view key) {
  const Setting* const runner = section(root, "runner");
  return runner == nullptr ? nullptr : section(*runner, key);
}

std::string folder_name(const std::string& path) {
  return std::filesystem::path(path).lexically_normal().filename().string();
}

/// From `model`, else `workspace` (models/rank/dnn), else the folder of the file.
void name_model(const Setting& root, Config& config) {
  const Setting *const model = section(root, "model"), *const network = section(root, "network");
  if (model != nullptr && network != nullptr)
    fail_at(*network, "there is model: ", one_line(*model), " as well, expected one of them");
  for (const char* key : {"loss", "metrics"})
    if (const Setting* const part = section(root, key); part != nullptr && network == nullptr)
      fail_at(*part, "belongs to a network, and there is none");
  if (network != nullptr) return;

  config.model_at = {.source = config.path};
  if (model != nullptr) {
    config.model = read_text(*model);
    config.model_at = model->at;
  } else if (const Setting* const workspace = section(root, "workspace")) {
    config.model = folder_name(read_text(*workspace));
    config.model_at = workspace->at;
  } else {
    config.model = folder_name(std::filesystem::absolute(config.path).parent_path().string());
  }
  if (config.model == "logistic_regression") config.model = "lr";
}

void read_hyper(const Setting& root, Config& config) {
  OptimizerKeys keys;
  Setting map{.kind = Setting::Kind::map,
              .name = "hyper_parameters.optimizer",
              .at = {.source = config.path}};
  std::vector<Setting> others;
  if (const Setting* const hyper = section(root, "hyper_parameters"))
    for (const Setting& setting : expect_map(*hyper).items) {
      if (setting.key() != "optimizer")
        others.push_back(setting);
      else if (setting.given())
        map = setting;
    }
  read_keys(optimizer_keys(), map, config.folder, keys, config.given);
  config.optimizer = make_optimizer(keys, map);
  config.hyper = Hyper(std::move(others));
  if (!keys.strategy.empty() && !config.given.contains("runner.sync_mode"))
    config.runner.sync_mode = keys.strategy;
}

void read_tables(const Setting& root, Config& config) {
  const Setting* const tables = section(root, "tables");
  if (tables == nullptr) return;
  for (const Setting& table : expect_map(*tables).items) {
    TableKeys& keys = config.tables[std::string(table.key())];
    if (table.given()) read_keys(table_keys(), table, config.folder, keys, config.given);
    for (const char* key : {"dim", "init"})
      if (const Setting* const setting = table.find(key);
          setting != nullptr && !config.model.empty())
        fail_at(*setting, "belongs to a network; the model ", config.model, " has its own");
  }
}

bool is_stream(const std::string& type) {
  return type == "QueueDataset" || type == "InmemoryDataset";
}

bool is_parser(const std::string& text) {
  if (text == kDigits) return true;
  const std::vector<std::string> names = parser_names();
  return std::ranges::find(names, text.substr(0, text.find('('))) != names.end();
}

/// The text of a parser for what `reader` or PaddleRec's reader path says.
std::string parser_text(const Config& config, const Setting* reader, const Setting* path,
                        bool piped, std::vector<std::string>& notes) {
  const auto not_used = [&](const std::string& why) {
    notes.push_back(path->name + ": '" + path->text + "' is not used, " + why);
  };
  if (reader != nullptr) {
    if (path != nullptr) not_used("runner.reader says " + reader->text);
    const int64_t ids = config.hyper.integer("sparse_feature_number", kIds);
    return reader->text == "criteo" && ids > 0 ? "criteo(hash=" + std::to_string(ids) + ")"
                                               : reader->text;
  }
  if (path == nullptr) return "multislot";
  if (is_parser(path->text)) return path->text;
  if (piped)
    not_used("pipe_command reads");
  else if (path->text == "criteo_reader")
    return "slot_text";
  else
    fail_at(*path, "refused: '", path->text, "' is a Python module, expected a parser (",
            "criteo, multislot, slot_text ...); a program reads with reader_type: QueueDataset ",
            "and pipe_command");
  return "multislot";
}

std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

/// PaddleRec appends the YAML and its tools' folder to each command; other programs than Python
/// scripts would take them for data.
std::string with_arguments(const std::string& command, const std::string& path) {
  if (!command.ends_with(".py")) return command;
  const std::filesystem::path yaml = std::filesystem::absolute(path).lexically_normal();
  return command + " " + quoted(yaml.string()) + " " + quoted(yaml.parent_path().string());
}

Reading make_reading(const Config& config, const Setting& root, bool train,
                     std::vector<std::string>& notes) {
  const Runner& runner = config.runner;
  Reading reading{.data_dir = train ? runner.train_data_dir : runner.test_data_dir,
                  .type = train || runner.infer_reader_type.empty() ? runner.reader_type
                                                                    : runner.infer_reader_type,
                  .parser = {},
                  .pipe_command = {}};
  if (is_stream(reading.type))
    reading.pipe_command = with_arguments(runner.pipe_command, config.path);
  else if (!runner.pipe_command.empty())
    notes.push_back("runner.pipe_command is not used, " + reading.type + " reads the files itself");
  const Setting* const path =
      runner_setting(root, train ? "train_reader_path" : "infer_reader_path");
  reading.parser = parser_text(config, runner_setting(root, "reader"), path,
                               !reading.pipe_command.empty(), notes);
  return reading;
}

/// The parser and the slots must go together; nothing is read for it.
void check_reading(const Reading& reading, const Config& config, const Setting& at) {
  if (reading.parser == kDigits) {
    constexpr int64_t kPixels = 28 * 28;
    if (config.inputs.dense_size != kPixels || !config.inputs.slots.empty())
      fail_at(at, kDigits, " gives images, expected inputs: {dense: ", kPixels, ", label: ...}");
    return;
  }
  try {
    static_cast<void>(make_parser(reading.parser, config.inputs.columns));
    const Call call(reading.parser);
    const auto ids = static_cast<double>(config.hyper.integer("sparse_feature_number", kIds));
    check<ConfigError>(config.model.empty() || call.name() != "criteo" || ids == 0 ||
                           call.number(0, "hash", kIds) <= ids,
                       "'", reading.parser,
                       "': gives ids above hyper_parameters.sparse_feature_number ", ids);
  } catch (const ConfigError& e) {
    fail_at(at, e.what());
  }
}

void read_data(const Setting& root, Config& config) {
  config.train = make_reading(config, root, true, config.notes);
  std::vector<std::string> notes;
  config.infer = make_reading(config, root, false, notes);
  for (std::string& note : notes)
    if (std::ranges::find(config.notes, note) == config.notes.end())
      config.notes.push_back(std::move(note));

  Setting pad{.kind = Setting::Kind::scalar, .text = "pad"};
  const Setting* empty = runner_setting(root, "empty_slot");
  SlotNames names;
  const Setting* const path = runner_setting(root, "train_reader_path");
  if (path != nullptr && path->text == "criteo_reader" && config.train.parser == "slot_text") {
    names = {.dense = "dense_feature", .label = "click", .prefix = ""};
    if (empty == nullptr) empty = &pad;
  }
  config.inputs = make_inputs(section(root, "inputs"), config.hyper, names, empty);

  const Setting none{.name = "runner.reader", .at = {.source = config.path}};
  const auto place = [&](const char* own) {
    const Setting* const reader = runner_setting(root, "reader");
    const Setting* const setting = reader != nullptr ? reader : runner_setting(root, own);
    return setting != nullptr ? *setting : none;
  };
  check_reading(config.train, config, place("train_reader_path"));
  check_reading(config.infer, config, place("infer_reader_path"));
}

/// Checks that concern several keys.
void check_runner(const Setting& root, Config& config) {
  Runner& runner = config.runner;
  if (runner.shuffle && runner.reader_type == "QueueDataset")
    fail_at(*runner_setting(root, "shuffle"),
            "QueueDataset streams its files, expected reader_type InmemoryDataset or DataLoader");
  if (!runner.model_init_path.empty() && !runner.warmup_model_path.empty())
    fail_at(*runner_setting(root, "warmup_model_path"),
            "there is model_init_path as well, expected one of them");
  if (runner.infer_end_epoch == 0) runner.infer_end_epoch = runner.epochs;
  if (const Setting* const start = runner_setting(root, "infer_start_epoch");
      start != nullptr && runner.infer_start_epoch >= runner.infer_end_epoch)
    fail_at(*start, "expected a number below infer_end_epoch ", runner.infer_end_epoch, ", got ",
            runner.infer_start_epoch);
  if (runner.infer_load_path.empty()) runner.infer_load_path = runner.model_save_path;
  if (runner.use_fleet)
    config.notes.emplace_back("runner.use_fleet: without a launcher the run is local");
  if (!runner.model_path.empty())
    config.notes.push_back("runner.model_path: '" + runner.model_path +
                           "' is not used, the model is " +
                           (config.model.empty() ? "the network of the file" : config.model));
}

}  // namespace

Config build_config(const Setting& root, const std::string& path) {
  check_sections(root);
  Config config;
  config.path = path;
  config.folder = std::filesystem::path(path).parent_path().string();
  if (config.folder.empty()) config.folder = ".";
  if (const Setting* const runner = section(root, "runner"))
    read_keys(runner_keys(), *runner, config.folder, config.runner, config.given);
  if (!config.given.contains("runner.model_save_path"))
    config.runner.model_save_path =
        keys_detail::in_folder(config.folder, config.runner.model_save_path);
  name_model(root, config);
  read_hyper(root, config);
  read_tables(root, config);
  read_data(root, config);
  check_runner(root, config);
  for (const auto& [key, into] : {std::pair("network", &config.network),
                                  {"loss", &config.loss},
                                  {"metrics", &config.metrics}})
    if (const Setting* const setting = section(root, key)) *into = *setting;
  return config;
}

std::string describe(const Config& config) {
  std::vector<std::pair<std::string, std::string>> lines = {
      {"config", config.path}, {"model", config.model.empty() ? "network" : config.model}};
  for (auto& line : given_values(runner_keys(), "runner", config.runner, config.given))
    lines.push_back(std::move(line));
  lines.emplace_back("reader", config.train.parser);
  lines.emplace_back("optimizer", config.optimizer.rule);
  lines.emplace_back("learning_rate", config.optimizer.learning_rate);
  if (!config.optimizer.regularizer.empty())
    lines.emplace_back("regularizer", config.optimizer.regularizer);
  if (!config.optimizer.clip.empty()) lines.emplace_back("clip", config.optimizer.clip);
  for (const Setting& setting : config.hyper.settings())
    lines.emplace_back(setting.name, one_line(setting));
  for (const auto& [name, keys] : config.tables)
    for (auto& line : given_values(table_keys(), "tables." + name, keys, config.given))
      lines.push_back(std::move(line));

  size_t width = 0;
  for (const auto& [name, value] : lines) width = std::max(width, name.size());
  std::ostringstream text;
  for (const auto& [name, value] : lines)
    text << name << std::string(width + 2 - name.size(), ' ') << value << '\n';
  return text.str();
}

}  // namespace argosy
