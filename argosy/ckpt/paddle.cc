#include "argosy/ckpt/paddle.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "argosy/base/call.h"
#include "argosy/base/error.h"
#include "argosy/ckpt/checkpoint_files.h"
#include "argosy/ckpt/paddle_rows.h"
#include "argosy/ckpt/pickle.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_ending(const std::string& folder, const std::string& ending) {
  std::error_code error;
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ending) files.push_back(entry.path().string());
  check<IoError>(!error, folder, ": cannot be listed: ", error.message());
  std::ranges::sort(files);
  return files;
}

const NamedTensor* find(const std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &*found;
}

/// Steps that were done, from adam's running product of beta2, which begins with beta2 itself.
std::optional<int64_t> steps_of(const NamedTensor& beta2_power) {
  constexpr double kBeta2 = 0.999;
  const double power = beta2_power.value.dtype() == DType::f32 && beta2_power.value.numel() == 1
                           ? beta2_power.value.as<float>()[0]
                           : 0;
  if (!(power > 0 && power < 1)) return std::nullopt;
  return std::max<int64_t>(0, std::llround(std::log(power) / std::log(kBeta2)) - 1);
}

/// Parameters, then their optimizer state as NAME@state, then @step.
class Dense {
 public:
  Dense(Env& env, const PaddleImport& import) : env_(env), import_(import) {}

  void read(const std::string& path) {
    PickledArrays file = read_pickled_arrays(env_.read_file(path), path);
    for (NamedTensor& tensor : file.tensors) {
      if (tensor.name.starts_with("StructuredToParameterName@@")) continue;
      std::string inner = tensor.name;  // optimizers call a parameter by this name
      for (const std::string& said : {"StructuredToParameterName@@." + tensor.name, tensor.name})
        if (file.texts.contains(said)) inner = file.texts.at(said);
      const auto renamed = import_.renames.find(tensor.name);
      if (renamed != import_.renames.end()) tensor.name = renamed->second;
      check<ConfigError>(is_plain_name(tensor.name), path, ": parameter '", tensor.name, "', ",
                         kPlainName);
      check<DataError>(find(tensors, tensor.name) == nullptr, path, ": parameter '", tensor.name,
                       "' is there twice");
      inner_.push_back(inner);
      tensors.push_back(std::move(tensor));
    }
  }

  void read_optimizer(const std::string& path) {
    const PickledArrays file = read_pickled_arrays(env_.read_file(path), path);
    const size_t parameters = inner_.size();
    for (size_t i = 0; i < parameters; ++i) {
      std::vector<float> state;
      // What argosy's rules keep, in their order: adam, adagrad, momentum.
      for (const char* part : {"_moment1_0", "_moment2_0", "_moment_0", "_velocity_0"})
        if (const NamedTensor* found = find(file.tensors, inner_[i] + part)) {
          check<DataError>(found->value.dtype() == DType::f32 &&
                               found->value.numel() == tensors[i].value.numel(),
                           path, ": '", found->name, "' does not fit '", tensors[i].name, "'");
          const auto values = found->value.as<float>();
          state.insert(state.end(), values.begin(), values.end());
        }
      if (const NamedTensor* power = find(file.tensors, inner_[i] + "_beta2_pow_acc_0"))
        take_steps(path, *power);
      if (state.empty()) continue;
      tensors.push_back({tensors[i].name + "@state",
                         Tensor::of<float>({static_cast<int64_t>(state.size())}, state)});
      ++states;
    }
  }

  void finish() {
    tensors.push_back({"@step", Tensor::of<int64_t>({1}, {import_.step.value_or(step_)})});
  }

  std::vector<NamedTensor> tensors;
  size_t states = 0;

 private:
  void take_steps(const std::string& path, const NamedTensor& power) {
    if (import_.step) return;
    const auto steps = steps_of(power);
    check<ConfigError>(steps.has_value(), path, ": '", power.name,
                       "' does not tell how many steps were done, say --step");
    step_ = std::max(step_, *steps);
  }

  Env& env_;
  const PaddleImport& import_;
  std::vector<std::string> inner_;  // by parameter
  int64_t step_ = 0;
};

/// Folders that hold files of a table and are not asked for.
std::vector<std::string> other_tables(const std::string& folder, const PaddleImport& import) {
  std::error_code error;
  std::vector<std::string> others;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!entry.is_directory(error) ||
        std::ranges::find(import.tables, name, &PaddleTable::folder) != import.tables.end())
      continue;
    for (const auto& file : fs::directory_iterator(entry.path(), error))
      if (file.path().filename().string().starts_with("part-")) {
        others.push_back(name);
        break;
      }
  }
  std::ranges::sort(others);
  return others;
}

}  // namespace

PaddleTable parse_paddle_table(const std::string& text) {
  const size_t equals = text.find('='), colon = text.rfind(':');
  PaddleTable table;
  bool good = equals != std::string::npos && colon != std::string::npos && equals < colon;
  if (good) {
    table.folder = text.substr(0, equals);
    table.name = text.substr(equals + 1, colon - equals - 1);
    constexpr size_t kMostWeights = 1U << 16;
    const char* const end = text.data() + text.size();
    const auto [read, error] = std::from_chars(text.data() + colon + 1, end, table.dim);
    good = error == std::errc() && read == end && table.dim >= 1 && table.dim <= kMostWeights;
  }
  check<ConfigError>(good && is_plain_name(table.name) && is_plain_file_name(table.name), "table '",
                     text, "', expected FOLDER=NAME:WEIGHTS such as 001=embedding:9");
  return table;
}

void import_paddle(Env& env, const std::string& folder, const PaddleImport& import,
                   const std::string& to, std::FILE* out) {
  check<ConfigError>(!env.file_exists(manifest_path(to)), to,
                     ": has a checkpoint already, expected a folder without one");
  Dense dense(env, import);
  for (const std::string& file : files_ending(folder, ".pdparams")) dense.read(file);
  const size_t parameters = dense.tensors.size();
  for (const std::string& file : files_ending(folder, ".pdopt")) dense.read_optimizer(file);
  dense.finish();
  for (const auto& [from, name] : import.renames)
    check<ConfigError>(find(dense.tensors, name) != nullptr, folder, ": has no parameter '", from,
                       "' to rename");
  const std::vector<std::string> others = other_tables(folder, import);
  check<ConfigError>(parameters > 0 || !import.tables.empty(), folder, ": nothing to import, ",
                     others.empty() ? "expected *.pdparams or folders of tables"
                                    : fmt::format("say --table {}=NAME:WEIGHTS", others.front()));
  env.make_directories(to);
  Manifest manifest;
  manifest.generation = 1;
  uint64_t rows = 0;
  for (const PaddleTable& table : import.tables) {
    manifest.tables.push_back(import_paddle_table(env, folder, table, import, to));
    rows += manifest.tables.back().sum.rows;
  }
  save_model(env, manifest_path(to), {manifest.text(), dense.tensors});
  fmt::print(out, "{}: {} parameters, {} of them with optimizer state, and {} rows of {} tables\n",
             to, parameters, dense.states, rows, import.tables.size());
  for (const std::string& name : others)
    fmt::print(out, "{}/{} was left out, --table {}=NAME:WEIGHTS takes it\n", folder, name, name);
}

}  // namespace argosy
