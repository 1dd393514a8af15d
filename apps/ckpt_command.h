#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/ckpt/ckpt.h"
#include "argosy/ckpt/paddle.h"
#include "argosy/world/env.h"

namespace argosy {

/// The command line of `ckpt` and its subcommands.
struct CkptFlags {
  std::string dir, other, to, config, format = "npy";
  InspectOptions inspect = {};
  uint32_t servers = 1;
  PaddleImport import = {};
  std::vector<std::string> tables = {}, renames = {};
  int64_t step = -1;
};

/// The command line of `ckpt import` as a PaddleImport. Throws ConfigError.
inline PaddleImport paddle_import(const CkptFlags& flags) {
  PaddleImport import = flags.import;
  for (const std::string& text : flags.tables) import.tables.push_back(parse_paddle_table(text));
  for (const std::string& text : flags.renames) {
    const size_t equals = text.find('=');
    check<ConfigError>(equals != std::string::npos, "--rename ", text, ", expected OLD=NEW");
    import.renames[text.substr(0, equals)] = text.substr(equals + 1);
  }
  if (flags.step >= 0) import.step = flags.step;
  return import;
}

/// Throws unless the model of a configuration can load the checkpoint of a folder.
using CheckModel = void (*)(const std::string& config, const std::string& dir);

inline void add_ckpt_import(CLI::App& ckpt, CkptFlags& flags, CheckModel check_model) {
  auto* one = ckpt.add_subcommand(
      "import", "Make a checkpoint of what Paddle has saved: *.pdparams, *.pdopt, text tables");
  one->add_option("FOLDER", flags.dir, "folder with Paddle's files")->required();
  one->add_option("--to", flags.to, "folder to write into")->type_name("FOLDER")->required();
  one->add_option("--table", flags.tables, "a folder with text files of a table, and its name here")
      ->type_name("FOLDER=NAME:WEIGHTS")
      ->allow_extra_args(false);
  one->add_option("--accessor", flags.import.accessor, "sparse, ctr, ctr_double or common")
      ->capture_default_str();
  one->add_option("--rule", flags.import.rule,
                  "of accessors sparse and ctr: naive, adagrad, std_adagrad, adam or shared_adam")
      ->capture_default_str();
  one->add_option("--rename", flags.renames, "another name for a parameter")
      ->type_name("OLD=NEW")
      ->allow_extra_args(false);
  one->add_flag("--scores", flags.import.keep_scores, "keep show and click: entry show_click");
  one->add_flag("--unseen", flags.import.keep_unseen, "keep unseen days: track_unseen");
  one->add_option("--step", flags.step, "steps that were trained, if *.pdopt does not tell")
      ->check(CLI::NonNegativeNumber);
  one->add_option("-m,--config", flags.config, "YAML file whose model it has to fit");
  one->callback([&flags, check_model] {
    import_paddle(*real_env(), flags.dir, paddle_import(flags), flags.to, stdout);
    if (!flags.config.empty()) check_model(flags.config, flags.to);
  });
}

inline void add_ckpt(CLI::App& app, CkptFlags& flags, int& exit_code, CheckModel check_model) {
  auto* ckpt = app.add_subcommand("ckpt", "Look at saved models, check, compare and convert them");
  ckpt->require_subcommand(1);
  const auto add = [&](const char* name, const char* help, const char* folder) {
    auto* one = ckpt->add_subcommand(name, help);
    one->add_option("DIR", flags.dir, folder)->required();
    return one;
  };
  constexpr const char* kAtOrBelow = "folder with saved models at or below it";
  constexpr const char* kOne = "folder of a checkpoint";

  add("list", "Say what saved models there are: epoch, size, tables and their rows", kAtOrBelow)
      ->callback([&] { list_checkpoints(*real_env(), flags.dir, stdout); });
  add("verify", "Read everything again and check it: a line per file, exit code 1 if one is bad",
      kAtOrBelow)
      ->callback([&] { verify_checkpoints(*real_env(), flags.dir, stdout); });

  auto* inspect = add("inspect", "Print shapes, counts, norms and first values, or rows", kOne);
  inspect->add_option("--table", flags.inspect.table, "only this table")->type_name("NAME");
  inspect->add_option("--parameter", flags.inspect.parameter, "only this parameter")
      ->type_name("NAME");
  inspect->add_option("--keys", flags.inspect.keys, "print the rows of these keys")
      ->delimiter(',')
      ->type_name("KEY,...")
      ->allow_extra_args(false);
  inspect->callback([&] { inspect_checkpoint(*real_env(), flags.dir, flags.inspect, stdout); });

  auto* diff = add("diff", "Say how two checkpoints differ; exit code 1 if they do", kOne);
  diff->add_option("OTHER", flags.other, "folder of the other one")->required();
  diff->callback([&] {
    const Difference found = diff_checkpoints(*real_env(), flags.dir, flags.other, stdout);
    exit_code = found == Difference::some ? 1 : 0;
  });

  const auto add_to = [&](CLI::App* command) {
    command->add_option("--to", flags.to, "folder to write into")->type_name("FOLDER")->required();
  };
  auto* exporting = add("export", "Write parameters and tables for other programs", kOne);
  add_to(exporting);
  exporting->add_option("--format", flags.format, "text, npy or safetensors")
      ->capture_default_str();
  exporting->callback(
      [&] { export_checkpoint(*real_env(), flags.dir, flags.to, flags.format, stdout); });

  auto* reshard = add("reshard", "Write it as so many servers would have saved it", kOne);
  add_to(reshard);
  constexpr uint32_t kMostServers = 65535;
  reshard->add_option("--servers", flags.servers)
      ->check(CLI::Range(uint32_t{1}, kMostServers))
      ->required();
  reshard->callback(
      [&] { reshard_checkpoint(*real_env(), flags.dir, flags.servers, flags.to, stdout); });
  auto* merge = add("merge", "Write it with one file per table, as a run without servers", kOne);
  add_to(merge);
  merge->callback([&] { reshard_checkpoint(*real_env(), flags.dir, 0, flags.to, stdout); });
  add_ckpt_import(*ckpt, flags, check_model);
}

}  // namespace argosy
