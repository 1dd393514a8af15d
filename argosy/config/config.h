#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "argosy/base/settings.h"
#include "argosy/config/keys.h"
#include "argosy/data/columns.h"
#include "argosy/plan/plan.h"
#include "argosy/zoo/hyper.h"

namespace argosy {

/// The keys of `runner:`; runner_keys() says what each means.
struct Runner {
  std::string train_data_dir = {}, test_data_dir = {};
  int64_t train_batch_size = 512, infer_batch_size = 512;
  int64_t epochs = 1, print_interval = 100;
  std::string reader_type = "QueueDataset", infer_reader_type = {};
  std::string reader = {}, train_reader_path = {}, infer_reader_path = {};
  std::string pipe_command = {}, generate = {}, empty_slot = "error";
  double max_bad_ratio = 0.01;
  bool shuffle = false, split_file_list = false, dataset_debug = false, audit = false;
  int64_t reader_threads = 0, num_workers = 0, thread_num = 1, seed = 12345;
  bool deterministic = false;
  std::string check_nan = "fail";
  std::string graph = "static";
  std::string sync_mode = "async", embedding_mode = "replicated";
  int64_t geo_step = 400;
  std::string geo_scale = "mean";
  std::string memory_limit = {};
  bool use_fleet = false, use_gpu = false, use_auc = false, use_inference = false;
  int64_t auc_num = 1;
  std::string example_count_method = "example";
  std::string model_save_path = "model_output";
  std::string model_init_path = {}, warmup_model_path = {}, infer_load_path = {};
  std::string model_path = {};
  int64_t infer_start_epoch = 0, infer_end_epoch = 0, save_interval = 0;
  std::string checkpoint_interval = {};
  int64_t checkpoint_keep = 2;
  bool resume = false;
  std::vector<std::string> save_inference_feed_varnames = {}, save_inference_fetch_varnames = {};
};

/// The keys of `hyper_parameters.optimizer:` as written; Config::optimizer has their meaning.
struct OptimizerKeys {
  std::string rule = "Adam";  // class
  std::string learning_rate = "0.001", strategy = {}, regularizer = {}, clip = {};
  bool adam_lazy_mode = true;
  int64_t decay_steps = 0;
  std::optional<double> decay_rate = {}, weight_decay = {};
  std::optional<double> beta1 = {}, beta2 = {}, epsilon = {}, momentum = {};
};

/// The keys of each table of `tables:`.
struct TableKeys {
  int64_t dim = 0, size = 0;
  std::string rule = {}, learning_rate = {}, entry = {}, init = "uniform(-0.01, 0.01)";
  bool track_unseen = false;
  std::string store = {};
};

/// An instance's inputs, from `inputs:` or else from hyper_parameters.
struct InputKeys {
  std::string dense = {}, label = {};  // slots of these names; no dense: there is none
  int64_t dense_size = 0;
  std::vector<std::string> slots;      // of ids, in their order
  bool one_id = true;                  // per instance and slot; else any number
  std::vector<SlotSpec> columns = {};  // all of them, in the order of a MultiSlot line
};

/// How train or test data are read.
struct Reading {
  std::string data_dir, type;  // type: QueueDataset, InmemoryDataset, DataLoader or RecDataset
  std::string parser;          // a text of data/parser.h
  std::string pipe_command;    // for sh -c in the YAML's folder; empty: none
};

/// A YAML file of PaddleRec's form, checked: every key was known, fitted and was not refused.
/// docs/reference/config.md lists them.
struct Config {
  std::string path, folder;  // the file, and the folder that relative paths start from
  std::string model;         // of zoo/models; empty: the network below
  Place model_at;            // what named the model
  Runner runner;
  Optimizer optimizer;
  InputKeys inputs;
  Reading train, infer;
  Hyper hyper;  // without the optimizer
  std::map<std::string, TableKeys> tables;
  Setting network, loss, metrics;  // for config/network.h
  std::set<std::string> given;     // dotted names of the keys that were written
  std::vector<std::string> notes;  // one line each that a user should see at the start
};

/// Reads the file and then the overrides, each a "runner.epochs=2". Throws ConfigError, one line
/// that starts with file and line or with the override, IoError if the file cannot be read.
Config load_config(const std::string& path, std::span<const std::string> overrides = {});
/// Parses a text instead; `path` names it in messages.
Config parse_config(std::string_view yaml, const std::string& path,
                    std::span<const std::string> overrides = {});

/// The settings and their consequences, one per line, shown when a run starts.
std::string describe(const Config& config);

std::span<const ConfigKey<Runner>> runner_keys();
std::span<const ConfigKey<OptimizerKeys>> optimizer_keys();
std::span<const ConfigKey<TableKeys>> table_keys();
/// The generated part of docs/reference/config.md.
std::string config_reference();

}  // namespace argosy
