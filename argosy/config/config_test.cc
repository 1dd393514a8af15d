#include "argosy/config/config.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "argosy/base/test_support.h"

namespace argosy {
namespace {

constexpr const char* kPath = "models/rank/dnn/config.yaml";

Config parse(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  return parse_config(yaml, kPath, overrides);
}

/// The message of a configuration that must not be taken, without the path in front of the line.
std::string refusal(const std::string& yaml, const std::vector<std::string>& overrides = {}) {
  const std::string text = message_of<ConfigError>([&] { parse(yaml, overrides); });
  const std::string prefix = std::string(kPath) + ":";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::string runner_refusal(const std::string& line) { return refusal("runner:\n  " + line + "\n"); }

TEST(Config, ReadsWhatTheDistributedTutorialWrites) {
  const Config config = parse(R"(
runner:
  sync_mode: "async"   # sync / async / geo
  geo_step: 300
  split_file_list: False
  thread_num: 2
  reader_type: "QueueDataset"
  pipe_command: "python benchmark_reader.py"
  dataset_debug: True
)");
  EXPECT_EQ(config.runner.sync_mode, "async");
  EXPECT_EQ(config.runner.geo_step, 300);
  EXPECT_FALSE(config.runner.split_file_list);
  EXPECT_EQ(config.runner.thread_num, 2);
  EXPECT_TRUE(config.runner.dataset_debug);
  EXPECT_EQ(config.train.type, "QueueDataset");
  EXPECT_EQ(config.train.parser, "multislot");
  EXPECT_TRUE(config.train.pipe_command.starts_with("python benchmark_reader.py '/"));
  EXPECT_EQ(config.model, "dnn");
  EXPECT_TRUE(config.given.contains("runner.sync_mode"));
  EXPECT_FALSE(config.given.contains("runner.epochs"));
}

TEST(Config, ReadsAnUnchangedConfigurationOfPaddleRec) {
  const Config config = parse(R"(
runner:
  train_data_dir: "data/sample_data/train"
  train_reader_path: "criteo_reader" # importlib format
  use_gpu: False
  use_auc: True
  train_batch_size: 2
  epochs: 3
  print_interval: 2
  model_save_path: "output_model_dnn"
  infer_batch_size: 2
  infer_reader_path: "criteo_reader" # importlib format
  test_data_dir: "data/sample_data/train"
  infer_load_path: "output_model_dnn"
  infer_start_epoch: 0
  infer_end_epoch: 3
  num_workers: 0
  use_inference: False
  save_inference_feed_varnames: ["1","2","dense_input"]
  save_inference_fetch_varnames: ["sigmoid_0.tmp_0"]
  sync_mode: "async"
  split_file_list: False
  thread_num: 1
hyper_parameters:
  optimizer:
    class: Adam
    learning_rate: 0.001
    strategy: async
  sparse_inputs_slots: 27
  sparse_feature_number: 1000001
  sparse_feature_dim: 9
  dense_input_dim: 13
  fc_sizes: [512, 256, 128, 32]
  distributed_embedding: 0
)");
  EXPECT_EQ(config.runner.train_data_dir, "models/rank/dnn/data/sample_data/train");
  EXPECT_EQ(config.runner.model_save_path, "models/rank/dnn/output_model_dnn");
  EXPECT_EQ(config.optimizer.rule, "adam");
  EXPECT_EQ(config.optimizer.learning_rate, "0.001");
  EXPECT_EQ(config.train.parser, "slot_text");
  EXPECT_EQ(config.inputs.columns.size(), 28U);
  EXPECT_EQ(config.inputs.label, "click");
  EXPECT_EQ(config.inputs.slots.back(), "26");
  EXPECT_EQ(config.inputs.columns[1].empty, EmptySlot::pad);
  EXPECT_EQ(config.hyper.integers("fc_sizes", {}), (std::vector<int64_t>{512, 256, 128, 32}));
}

TEST(Config, HasDefaultsForAllThatIsNotWritten) {
  const Config config = parse("runner: {epochs: 4}");
  EXPECT_EQ(config.runner.train_batch_size, 512);
  EXPECT_EQ(config.runner.seed, 12345);
  EXPECT_FALSE(config.runner.use_gpu);
  EXPECT_EQ(config.runner.model_save_path, "models/rank/dnn/model_output");
  EXPECT_EQ(config.runner.infer_load_path, config.runner.model_save_path);
  EXPECT_EQ(config.runner.infer_end_epoch, 4);
  EXPECT_EQ(config.inputs.columns.front().name, "dense_input");
  EXPECT_EQ(config.inputs.columns[1].name, "C1");
  EXPECT_EQ(config.inputs.columns.back().name, "label");
  EXPECT_TRUE(config.notes.empty());
}

TEST(Config, AnEmptyValueLeavesTheDefault) {
  EXPECT_EQ(parse("runner:\n  epochs:\n  seed: ~\n").runner.seed, 12345);
  EXPECT_EQ(parse("runner:\nhyper_parameters:\n").runner.epochs, 1);
}

TEST(Config, UnknownKeysAreNamedWithLineAndNearest) {
  EXPECT_EQ(refusal("runner:\n  seed: 1\n  epoch: 3\n"),
            "3: unknown key runner.epoch, did you mean runner.epochs?");
  EXPECT_EQ(refusal("runer: {}\n"), "1: unknown key runer, did you mean runner?");
  EXPECT_EQ(refusal("\nepochs: 3\n"), "2: unknown key epochs, did you mean runner.epochs?");
  EXPECT_EQ(runner_refusal("zzzzzz: 3"), "2: unknown key runner.zzzzzz");
  EXPECT_EQ(refusal("hyper_parameters:\n  optimizer:\n    clas: Adam\n"),
            "3: unknown key hyper_parameters.optimizer.clas, did you mean "
            "hyper_parameters.optimizer.class?");
  EXPECT_EQ(refusal("inputs: {labl: x, slots: a}\n"),
            "1: unknown key inputs.labl, did you mean inputs.label?");
  EXPECT_EQ(refusal("tables: {t: {rul: sgd}}\n"),
            "1: unknown key tables.t.rul, did you mean tables.t.rule?");
}

TEST(Config, WrongTypesSayWhatWasExpected) {
  EXPECT_EQ(runner_refusal("epochs: two"),
            "2: runner.epochs: expected a whole number of at least 1, got 'two'");
  EXPECT_EQ(runner_refusal("thread_num: 0"),
            "2: runner.thread_num: expected a whole number from 1 to 1024, got '0'");
  EXPECT_EQ(runner_refusal("epochs: 1.5").substr(0, 40),
            "2: runner.epochs: expected a whole numbe");
  EXPECT_EQ(runner_refusal("use_auc: maybe"),
            "2: runner.use_auc: expected True or False, got 'maybe'");
  EXPECT_EQ(runner_refusal("max_bad_ratio: 2"),
            "2: runner.max_bad_ratio: expected a number from 0 to 1, got '2'");
  EXPECT_EQ(runner_refusal("max_bad_ratio: nan"),
            "2: runner.max_bad_ratio: expected a number from 0 to 1, got 'nan'");
  EXPECT_EQ(runner_refusal("pipe_command: [a, b]"),
            "2: runner.pipe_command: expected a text, got a list");
  EXPECT_EQ(runner_refusal("epochs: {a: 1}").find("got a map of keys") == std::string::npos, false);
  EXPECT_EQ(runner_refusal("sync_mode: fast"),
            "2: runner.sync_mode: expected one of async, geo, half_async, local, sync, heter, "
            "gpubox, got 'fast'");
  EXPECT_EQ(
      runner_refusal("save_inference_fetch_varnames: a"),
      "2: runner.save_inference_fetch_varnames: expected a list of texts, as [a, b], got 'a'");
  EXPECT_EQ(refusal("runner: 3\n"), "1: runner: expected keys with values below it, got '3'");
}

TEST(Config, FlagsAreReadAsPyYamlDoes) {
  for (const char* yes : {"True", "true", "yes", "on", "1", "\"True\""})
    EXPECT_TRUE(parse(std::string("runner: {use_auc: ") + yes + "}").runner.use_auc) << yes;
  for (const char* no : {"False", "false", "no", "off", "0", "\"False\""})
    EXPECT_FALSE(parse(std::string("runner: {use_auc: ") + no + "}").runner.use_auc) << no;
}

TEST(Config, BadYamlIsOneClearLine) {
  EXPECT_EQ(refusal(""), " the file holds no settings");
  EXPECT_EQ(refusal("# only a comment\n"), " the file holds no settings");
  EXPECT_EQ(refusal("runner:\n\tepochs: 1\n"), "2: a tab in front of the line, expected blanks");
  EXPECT_EQ(refusal("runner:\n  seed: 1\n  epochs: 2\n  seed: 3\n"),
            "4: runner.seed is given twice, first in line 2");
  EXPECT_EQ(refusal("runner: &a\n  seed: 1\n"),
            "1: anchors (&x, *x) are not read, write the value out");
  EXPECT_EQ(refusal("runner:\n  seed: &s 1\n  epochs: *s\n"),
            "2: anchors (&x, *x) are not read, write the value out");
  EXPECT_EQ(refusal("- a\n- b\n"), "1: expected keys such as runner: at the start of the line");
  EXPECT_EQ(refusal("just a text\n"), "1: expected keys such as runner: at the start of the line");
  EXPECT_EQ(refusal("runner: {seed: 1}\n---\nrunner: {seed: 2}\n"),
            " holds a second document (---), expected one");
  EXPECT_EQ(refusal("runner: {seed: !!python/none 1}\n").find("1: the tag tag:yaml.org"), 0U);
  EXPECT_EQ(
      refusal("runner.epochs: 3\n"),
      "1: 'runner.epochs' is no key: expected a name without dots, parts go below each other");
  EXPECT_EQ(refusal("runner: {[1]: 2}\n"), "1: a key must be a name");
  const std::string broken = refusal("runner:\n  seed: [1, 2\nhyper_parameters: 3\n");
  EXPECT_NE(broken.find(": not YAML: "), std::string::npos) << broken;
  EXPECT_EQ(broken.find('\n'), std::string::npos);
}

TEST(Config, OverridesWinAndAreCastByTheKey) {
  const Config config =
      parse("runner:\n  epochs: 3\nhyper_parameters:\n  fc_sizes: [4]\n",
            {"runner.epochs=7", "runner.pipe_command=a --x=1 # b", "runner.use_auc=true",
             "hyper_parameters.fc_sizes=[16, 8]", "hyper_parameters.optimizer.class=SGD",
             "runner.epochs=8", "model=deepfm"});
  EXPECT_EQ(config.runner.epochs, 8);
  EXPECT_EQ(config.runner.pipe_command, "a --x=1 # b");
  EXPECT_TRUE(config.runner.use_auc);
  EXPECT_EQ(config.hyper.integers("fc_sizes", {}), (std::vector<int64_t>{16, 8}));
  EXPECT_EQ(config.optimizer.rule, "sgd");
  EXPECT_EQ(config.model, "deepfm");
}

TEST(Config, WrongOverridesAreQuoted) {
  EXPECT_EQ(refusal("runner: {}", {"runner.epochs=two"}),
            "-o runner.epochs=two: runner.epochs: expected a whole number of at least 1, "
            "got 'two'");
  EXPECT_EQ(refusal("runner: {}", {"runner.epoch=2"}),
            "-o runner.epoch=2: unknown key runner.epoch, did you mean runner.epochs?");
  EXPECT_EQ(refusal("runner: {}", {"runner.epochs"}),
            "-o runner.epochs: expected KEY=VALUE, as runner.epochs=2");
  EXPECT_EQ(refusal("runner: {seed: 1}", {"runner.seed.x=2"}),
            "-o runner.seed.x=2: runner.seed has a value and no keys below it");
  EXPECT_EQ(refusal("runner: {}", {"runner..x=2"}), "-o runner..x=2: 'runner..x' is no key");
  EXPECT_EQ(refusal("runner: {}", {"hyper_parameters.fc_sizes=[1, 2"}).find("-o hyper_param"), 0U);
}

TEST(Config, EveryRefusedKeySaysWhyUnlessItAsksForNothing) {
  size_t refused = 0;
  for (const ConfigKey<Runner>& key : runner_keys()) {
    if (!key.refused()) continue;
    ++refused;
    const std::string name(key.name);
    EXPECT_EQ(runner_refusal(name + ": 20210803"),
              "2: runner." + name + ": refused: " + std::string(key.meaning));
    EXPECT_EQ(runner_refusal(name + ": False"), "nothing was thrown");
    EXPECT_EQ(runner_refusal(name + ": []"), "nothing was thrown");
  }
  EXPECT_GT(refused, 40U);
}

TEST(Config, KnowsEveryRunnerKeyOfPaddleRec) {
  for (const char* name : {"train_data_dir",
                           "test_data_dir",
                           "train_reader_path",
                           "infer_reader_path",
                           "train_batch_size",
                           "infer_batch_size",
                           "epochs",
                           "print_interval",
                           "use_gpu",
                           "use_xpu",
                           "use_npu",
                           "use_visual",
                           "use_auc",
                           "auc_num",
                           "use_fleet",
                           "use_inference",
                           "save_inference_feed_varnames",
                           "save_inference_fetch_varnames",
                           "model_save_path",
                           "model_init_path",
                           "infer_load_path",
                           "infer_start_epoch",
                           "infer_end_epoch",
                           "seed",
                           "num_workers",
                           "thread_num",
                           "reader_type",
                           "pipe_command",
                           "dataset_debug",
                           "sync_mode",
                           "geo_step",
                           "split_file_list",
                           "warmup_model_path",
                           "example_count_method",
                           "batch_generator",
                           "user_define_reader",
                           "use_out_vec",
                           "out_vec_path",
                           "emb_weight_name",
                           "use_save_data",
                           "need_dump",
                           "dump_fields_path",
                           "dump_fields",
                           "dump_param",
                           "parse_ins_id",
                           "parse_content",
                           "fs_name",
                           "fs_ugi",
                           "fs_client",
                           "with_coordinator",
                           "local_sparse",
                           "remote_sparse",
                           "days",
                           "pass_per_day",
                           "split_interval",
                           "split_per_pass",
                           "start_day",
                           "end_day",
                           "checkpoint_per_pass",
                           "save_delta_frequency",
                           "save_first_base",
                           "data_donefile",
                           "data_sleep_second",
                           "prefetch",
                           "shuffle_thread_num",
                           "preload_thread_num",
                           "train_thread_num",
                           "infer_thread_num",
                           "infer_data_dir",
                           "need_train_dump",
                           "need_infer_dump"})
    EXPECT_NE(std::ranges::find(runner_keys(), name, &ConfigKey<Runner>::name), runner_keys().end())
        << name;
}

TEST(Config, NoKeyIsListedTwice) {
  std::set<std::string_view> names;
  for (const ConfigKey<Runner>& key : runner_keys())
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
}

TEST(Config, DevicesThatAreNotThereAreRefused) {
  EXPECT_EQ(
      runner_refusal("use_gpu: True"),
      "2: runner.use_gpu: True, but there is no device: this build has no CUDA kernels (make "
      "cuda); ARGOSY_EMULATED_DEVICES=N makes N that are emulated on the CPU, or write False");
  EXPECT_EQ(runner_refusal("use_xpu: True"), "2: runner.use_xpu: refused: there is no such device");
  EXPECT_EQ(runner_refusal("use_gpu: 0"), "nothing was thrown");
}

TEST(Config, DigitsAreReadAsImagesOfTheirSize) {
  const auto refusal = [](const std::string& inputs) {
    try {
      static_cast<void>(parse_config(
          "runner: {reader: mnist}\ninputs: " + inputs + "\nnetwork: {y: linear(dense, size=10)}\n",
          "net.yaml"));
    } catch (const ConfigError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal("{dense: 784, label: digit}"), "");
  EXPECT_EQ(refusal("{dense: 28, label: digit}"),
            "net.yaml:1: runner.reader: mnist gives images, expected inputs: {dense: 784, label: "
            "...}");
}

TEST(Config, AGraphIsStaticOrDynamic) {
  EXPECT_EQ(parse_config("model: dnn\n", "c.yaml").runner.graph, "static");
  EXPECT_EQ(runner_refusal("graph: dynamic"), "nothing was thrown");
  EXPECT_EQ(runner_refusal("graph: eager"),
            "2: runner.graph: expected one of static, dynamic, got 'eager'");
}

TEST(Config, ReaderTypesHaveAliases) {
  const auto type = [](const std::string& text) {
    return parse("runner: {reader_type: " + text + "}").runner.reader_type;
  };
  EXPECT_EQ(type("queue"), "QueueDataset");
  EXPECT_EQ(type("memory"), "InmemoryDataset");
  EXPECT_EQ(type("InMemoryDataset"), "InmemoryDataset");
  EXPECT_EQ(type("RecDataset"), "RecDataset");
  EXPECT_NE(runner_refusal("reader_type: CustomizeDataLoader").find("refused"), std::string::npos);
  EXPECT_NE(runner_refusal("reader_type: Queue").find("expected one of DataLoader"),
            std::string::npos);
}

TEST(Config, ReadersAreParsersOrPaddleRecsSlotText) {
  const auto parser = [](const std::string& runner) {
    return parse("runner: {" + runner + "}").train.parser;
  };
  EXPECT_EQ(parser("reader: multislot"), "multislot");
  EXPECT_EQ(parser("reader: criteo"), "criteo(hash=1000001)");
  EXPECT_EQ(parser("reader: criteo(hash=1000)"), "criteo(hash=1000)");
  EXPECT_EQ(parser("train_reader_path: multislot"), "multislot");
  EXPECT_EQ(runner_refusal("reader: criteo(hsh=7)"),
            "2: runner.reader: 'criteo(hsh=7)': parser criteo has no argument 'hsh', did you mean "
            "hash?");
  EXPECT_EQ(runner_refusal("reader: crite"),
            "2: runner.reader: 'crite': no parser 'crite', did you mean criteo?");
  EXPECT_EQ(runner_refusal("train_reader_path: my.reader"),
            "2: runner.train_reader_path: refused: 'my.reader' is a Python module, expected a "
            "parser (criteo, multislot, slot_text ...); a program reads with reader_type: "
            "QueueDataset and pipe_command");
  EXPECT_NE(refusal("runner: {reader: criteo(hash=11)}\nhyper_parameters: {sparse_feature_number: "
                    "10}\n")
                .find("gives ids above hyper_parameters.sparse_feature_number 10"),
            std::string::npos);
}

TEST(Config, WhatIsNotUsedIsNoted) {
  EXPECT_EQ(parse("runner: {train_reader_path: benchmark_reader, pipe_command: cat}").notes,
            std::vector<std::string>{"runner.train_reader_path: 'benchmark_reader' is not used, "
                                     "pipe_command reads"});
  EXPECT_EQ(parse("runner: {reader_type: DataLoader, pipe_command: cat}").notes,
            std::vector<std::string>{
                "runner.pipe_command is not used, DataLoader reads the files itself"});
  EXPECT_EQ(parse("runner: {model_path: static_model.py, use_fleet: True}").notes.size(), 2U);
}

TEST(Config, PythonScriptsGetTheYamlAndItsFolder) {
  const auto piped = [](const std::string& command) {
    return parse_config("runner: {pipe_command: " + command + "}", "/a/it's/c.yaml")
        .train.pipe_command;
  };
  EXPECT_EQ(piped("python r.py"), R"(python r.py '/a/it'\''s/c.yaml' '/a/it'\''s')");
  EXPECT_EQ(piped("cat"), "cat");
  EXPECT_EQ(piped("python r.py | sort"), "python r.py | sort");
}

TEST(Config, KeysThatExcludeEachOtherAreRefused) {
  EXPECT_EQ(runner_refusal("shuffle: True"),
            "2: runner.shuffle: QueueDataset streams its files, expected reader_type "
            "InmemoryDataset or DataLoader");
  EXPECT_EQ(refusal("runner:\n  model_init_path: a\n  warmup_model_path: b\n"),
            "3: runner.warmup_model_path: there is model_init_path as well, expected one of them");
  EXPECT_EQ(refusal("runner:\n  epochs: 2\n  infer_start_epoch: 2\n"),
            "3: runner.infer_start_epoch: expected a number below infer_end_epoch 2, got 2");
  EXPECT_EQ(runner_refusal("empty_slot: empty"),
            "2: runner.empty_slot: empty needs inputs.ids_per_slot: any, with one id per slot use "
            "pad");
  EXPECT_EQ(refusal("model: dnn\nnetwork: {a: b}\n"),
            "2: network: there is model: dnn as well, expected one of them");
  EXPECT_EQ(refusal("loss: a\n"), "1: loss: belongs to a network, and there is none");
  EXPECT_EQ(refusal("table_parameters: {embedding: {shard_num: 10}}\n")
                .find("1: table_parameters: "
                      "refused"),
            0U);
}

TEST(Config, OptimizersBecomeTextsOfRules) {
  const auto optimizer = [](const std::string& keys) {
    return parse("hyper_parameters: {optimizer: {" + keys + "}}").optimizer;
  };
  EXPECT_EQ(optimizer("class: Adam").rule, "adam");
  EXPECT_EQ(optimizer("class: adam, beta1: 0.5, epsilon: 0.25").rule,
            "adam(beta1=0.5, epsilon=0.25)");
  EXPECT_EQ(optimizer("class: Momentum, momentum: 0.5").rule, "momentum(mu=0.5)");
  EXPECT_EQ(optimizer("class: \"adam(beta1=0.8)\"").rule, "adam(beta1=0.8)");
  EXPECT_EQ(optimizer("class: AdamW, weight_decay: 0.5").rule, "adamw(weight_decay=0.5)");
  EXPECT_EQ(optimizer("class: SGD, weight_decay: 0.5").regularizer, "l2(0.5)");
  EXPECT_EQ(optimizer("class: SGD, weight_decay: 0").regularizer, "");
  EXPECT_EQ(optimizer("learning_rate: 0.5, decay_steps: 10, decay_rate: 0.75").learning_rate,
            "exponential(0.5, steps=10, factor=0.75)");
  EXPECT_EQ(optimizer("clip: global_norm(5)").clip, "global_norm(5)");
}

TEST(Config, WrongOptimizersAreNamedWithTheirLine) {
  const auto wrong = [](const std::string& key) {
    return refusal("hyper_parameters:\n  optimizer:\n    " + key + "\n");
  };
  EXPECT_EQ(wrong("class: Adamm"),
            "3: hyper_parameters.optimizer.class: 'adamm': no rule 'adamm', did you mean adam?");
  EXPECT_NE(wrong("momentum: 0.5").find("'adam(mu=0.5)': rule adam has no argument 'mu'"),
            std::string::npos);
  EXPECT_NE(wrong("learning_rate: fast").find("3: hyper_parameters.optimizer.learning_rate: "),
            std::string::npos);
  EXPECT_NE(wrong("clip: nrm(3)").find("3: hyper_parameters.optimizer.clip: "), std::string::npos);
  EXPECT_NE(wrong("clip: norm(0)").find("must be above 0"), std::string::npos);
  EXPECT_NE(wrong("adam_lazy_mode: False").find("refused: rows are updated"), std::string::npos);
  EXPECT_EQ(wrong("decay_rate: 0.5"),
            "3: hyper_parameters.optimizer.decay_rate: needs decay_steps as well");
  EXPECT_NE(wrong("{class: sgd(), beta1: 0.5}").find("has its settings in brackets already"),
            std::string::npos);
}

TEST(Config, TheStrategyIsTheModeWhereNoModeIsGiven) {
  const std::string strategy = "hyper_parameters: {optimizer: {strategy: sync}}\n";
  EXPECT_EQ(parse(strategy).runner.sync_mode, "sync");
  EXPECT_EQ(parse(strategy + "runner: {sync_mode: geo}\n").runner.sync_mode, "geo");
}

TEST(Config, InputsSetNamesAndOrderOfTheSlots) {
  const Config config =
      parse("inputs: {label: click, slots: [u, C1..C3], dense: {name: d, size: 2}}\n");
  std::vector<std::string> names;
  for (const SlotSpec& slot : config.inputs.columns) names.push_back(slot.name);
  EXPECT_EQ(names, (std::vector<std::string>{"click", "u", "C1", "C2", "C3", "d"}));
  EXPECT_EQ(config.inputs.columns.back().width, 2U);
  EXPECT_EQ(config.inputs.columns[1].width, 1U);
  EXPECT_EQ(parse("inputs: {label: y, slots: a, ids_per_slot: any}").inputs.columns[1].width, 0U);
  EXPECT_EQ(parse("inputs: {dense: 3, label: y}").inputs.dense, "dense");
}

TEST(Config, WrongInputsAreRefused) {
  EXPECT_EQ(refusal("inputs: {slots: a}\n"), "1: inputs: expected a label, as label: click");
  EXPECT_EQ(refusal("inputs: {label: y, slots: C9..C3}\n"),
            "1: inputs.slots: 'C9..C3': expected a range such as C1..C26");
  EXPECT_EQ(refusal("inputs: {label: y, slots: C1..D3}\n"),
            "1: inputs.slots: 'C1..D3': expected a range such as C1..C26");
  EXPECT_EQ(refusal("inputs: {label: y, ids_per_slot: 2}\n"),
            "1: inputs.ids_per_slot: expected 1 or any, got '2'");
  EXPECT_EQ(refusal("inputs: {label: y, slots: a..a}\n").find("1: inputs.slots: "), 0U);
  EXPECT_NE(
      refusal("inputs: {label: y, slots: a, dense: 3}\nhyper_parameters: {dense_input_dim: 4}")
          .find("dense_input_dim is 4, but inputs declares 3"),
      std::string::npos);
  EXPECT_EQ(refusal("inputs: {label: y, slots: [a, a]}\n").find("nothing"), std::string::npos);
}

TEST(Config, TablesAreReadByName) {
  const Config config =
      parse("tables:\n  embedding: {rule: adagrad, learning_rate: 0.05, entry: count_filter(5)}\n");
  const TableKeys& table = config.tables.at("embedding");
  EXPECT_EQ(table.rule, "adagrad");
  EXPECT_EQ(table.learning_rate, "0.05");
  EXPECT_EQ(table.entry, "count_filter(5)");
  EXPECT_EQ(refusal("tables:\n  e:\n    rule: adagra\n"),
            "3: tables.e.rule: 'adagra': no rule 'adagra', did you mean adagrad?");
  EXPECT_EQ(refusal("tables:\n  e:\n    dim: 3\n"),
            "3: tables.e.dim: belongs to a network; the model dnn has its own");
  EXPECT_NE(refusal("tables:\n  e:\n    entry: sometimes\n").find("3: tables.e.entry: "),
            std::string::npos);
}

TEST(Config, TheModelComesFromItsKeyTheWorkspaceOrTheFolder) {
  EXPECT_EQ(parse("model: fm\nworkspace: models/rank/dcn\n").model, "fm");
  EXPECT_EQ(parse("workspace: models/rank/dcn\n").model, "dcn");
  EXPECT_EQ(parse("workspace: models/rank/logistic_regression\n").model, "lr");
  EXPECT_EQ(parse("runner:\n").model, "dnn");
  EXPECT_EQ(parse("network: {}\nloss: x\n").model, "");
}

TEST(Config, LoadsAFileWithPathsFromItsFolder) {
  const TestFolder folder;
  const std::string path =
      folder.write("c.yaml", "runner: {train_data_dir: data, model_init_path: /m}\n");
  const Config config = load_config(path);
  EXPECT_EQ(config.runner.train_data_dir, folder.path() + "/data");
  EXPECT_EQ(config.runner.model_init_path, "/m");
  EXPECT_EQ(message_of<IoError>([&] { load_config(folder.path() + "/none.yaml"); }),
            folder.path() + "/none.yaml: cannot be opened");
  EXPECT_EQ(message_of<ConfigError>([&] { load_config(folder.path()); }),
            folder.path() + ": is a folder, expected a YAML file");
}

TEST(Config, DescribesWhatWasSet) {
  const Config config = parse(
      "runner: {epochs: 2, reader: criteo(hash=7)}\n"
      "hyper_parameters: {sparse_feature_number: 7, fc_sizes: [4, 2]}\n"
      "tables: {embedding: {rule: sgd}}\n");
  EXPECT_EQ(describe(config),
            "config                                  models/rank/dnn/config.yaml\n"
            "model                                   dnn\n"
            "runner.epochs                           2\n"
            "runner.reader                           criteo(hash=7)\n"
            "reader                                  criteo(hash=7)\n"
            "optimizer                               adam\n"
            "learning_rate                           0.001\n"
            "hyper_parameters.sparse_feature_number  7\n"
            "hyper_parameters.fc_sizes               [4, 2]\n"
            "tables.embedding.rule                   sgd\n");
}

/// The page holds the generated tables between two marks; ARGOSY_UPDATE_GOLDEN=1 writes them.
TEST(Config, ReferencePageListsEveryKey) {
  const std::string path = std::string(ARGOSY_SOURCE_DIR) + "/docs/reference/config.md";
  const std::string begin = "<!-- generated: keys -->\n", end = "<!-- end of generated keys -->\n";
  std::ostringstream in;
  in << std::ifstream(path).rdbuf();
  std::string page = in.str();
  const size_t first = page.find(begin), last = page.find(end);
  ASSERT_NE(first, std::string::npos) << path;
  ASSERT_NE(last, std::string::npos) << path;
  const size_t start = first + begin.size();
  if (std::getenv("ARGOSY_UPDATE_GOLDEN") != nullptr) {
    page.replace(start, last - start, config_reference());
    std::ofstream(path) << page;
    return;
  }
  EXPECT_EQ(page.substr(start, last - start), config_reference());
}

TEST(Hyper, ReadsByTypeWithLine) {
  const Hyper hyper =
      parse("hyper_parameters:\n  a: 3\n  b: 0.5\n  c: text\n  d: [1, 2]\n  e: True\n").hyper;
  EXPECT_EQ(hyper.integer("a", 0), 3);
  EXPECT_EQ(hyper.real("b", 0), 0.5);
  EXPECT_EQ(hyper.text("c", ""), "text");
  EXPECT_EQ(hyper.integers("d", {}), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(hyper.flag("e", false));
  EXPECT_EQ(hyper.integer("absent", 9), 9);
  EXPECT_EQ(
      message_of<ConfigError>([&] { hyper.integer("c", 0); }),
      "models/rank/dnn/config.yaml:4: hyper_parameters.c: expected a whole number, got 'text'");
  EXPECT_EQ(
      message_of<ConfigError>([&] {
        hyper.integers("d", {}, {2, 5});
      }),
      "models/rank/dnn/config.yaml:5: hyper_parameters.d[0]: expected a whole number from 2 to "
      "5, got '1'");
}

TEST(Hyper, RefusesWhatWasNotAskedFor) {
  const Hyper hyper = parse("hyper_parameters:\n  fc_size: [1]\n  dim: 3\n").hyper;
  Hyper::Names asked;
  const Hyper recording = hyper.recording(asked);
  recording.integers("fc_sizes", {});
  recording.integer("dim", 0);
  EXPECT_EQ(message_of<ConfigError>([&] { hyper.refuse_others(asked); }),
            "models/rank/dnn/config.yaml:2: unknown key hyper_parameters.fc_size, did you mean "
            "hyper_parameters.fc_sizes?");
  recording.integers("fc_size", {});
  EXPECT_NO_THROW(hyper.refuse_others(asked));
}

TEST(ExpandRange, CountsUp) {
  EXPECT_EQ(expand_range("C9..C11"), (std::vector<std::string>{"C9", "C10", "C11"}));
  EXPECT_EQ(expand_range("1..2"), (std::vector<std::string>{"1", "2"}));
  EXPECT_EQ(expand_range("user"), std::vector<std::string>{"user"});
  for (const char* wrong : {"C1..", "..C2", "C01..C26", "C1..C999999", "a..b", "C3..C1", "C1..2"})
    EXPECT_THROW(expand_range(wrong), ConfigError) << wrong;
}

}  // namespace
}  // namespace argosy
