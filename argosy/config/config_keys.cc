// The keys of a configuration, one row each. A row without a member is a key of PaddleRec that is
// refused, with the reason.
#include <algorithm>
#include <array>

#include "argosy/base/call.h"
#include "argosy/base/memory_size.h"
#include "argosy/config/config.h"
#include "argosy/device/devices.h"
#include "argosy/job/cuts.h"
#include "argosy/modes/mode.h"
#include "argosy/ps/entry.h"
#include "argosy/ps/gradient.h"
#include "argosy/ps/initializer.h"
#include "argosy/ps/row_table.h"
#include "argosy/ps/rule.h"
#include "argosy/ps/schedule.h"
#include "argosy/tensor/finite.h"

namespace argosy {
namespace {

constexpr Limits kFromZero{.low = 0}, kFromOne{.low = 1}, kThreads{0, 1024}, kShare{0, 1};
constexpr Limits kBatch{1, 0x1.0p31 - 1}, kBelowOne{0, 0x1.fffffep-1}, kDim{1, 65536};

/// Modes of a run without ranks, and the seeds' names of those that are not there.
std::string mode_choices() {
  std::string names;
  for (const Mode& mode : modes())
    if (mode.needs != Mode::Needs::ranks) names += mode.name + " ";
  return names + "heter gpubox";
}
const std::string kModes = mode_choices();

/// Reports the place of a text that another part of argosy cannot read.
template <class F>
void check_text(const Setting& setting, F read) {
  try {
    read();
  } catch (const ConfigError& e) {
    fail_at(setting, e.what());
  }
}

void check_call(const Setting& setting, Runner&) {
  if (!setting.text.empty()) check_text(setting, [&] { Call{setting.text}; });
}

std::string reader_type(const Setting& setting) {
  const std::string& text = setting.text;
  for (const char* name : {"DataLoader", "QueueDataset", "InmemoryDataset", "RecDataset"})
    if (text == name) return text;
  if (text == "queue") return "QueueDataset";
  if (text == "memory" || text == "InMemoryDataset") return "InmemoryDataset";
  if (text == "CustomizeDataLoader")
    fail_at(setting, "refused: CustomizeDataLoader is a Python object of the trainer; put the ",
            "reading into a program and name it by reader_type: QueueDataset and pipe_command");
  fail_at(setting, "expected one of DataLoader, QueueDataset (queue), InmemoryDataset (memory), ",
          "RecDataset, got '", text, "'");
}

void check_reader_type(const Setting& setting, Runner& runner) {
  runner.reader_type = reader_type(setting);
}

void check_infer_reader_type(const Setting& setting, Runner& runner) {
  runner.infer_reader_type = reader_type(setting);
}

void check_cut_interval(const Setting& setting, Runner& runner) {
  check_text(setting, [&] { parse_cut_interval(runner.checkpoint_interval); });
}

void check_gpu(const Setting& setting, Runner& runner) {
  if (runner.use_gpu && device::devices().count == 0)
    fail_at(setting, "True, but there is no device: ", device::why_none(), "; ", device::kEmulated,
            "=N makes N that are emulated on the CPU, or write False");
}

void check_lazy_mode(const Setting& setting, OptimizerKeys& keys) {
  if (!keys.adam_lazy_mode)
    fail_at(setting,
            "refused: rows are updated when a batch uses them, which is True; a pass over ",
            "the whole table in every step is not done");
}

template <class T>
void check_rule(const Setting& setting, T&) {
  check_text(setting, [&] { static_cast<void>(ps::make_rule(setting.text)); });
}

template <class T>
void check_rate(const Setting& setting, T&) {
  check_text(setting, [&] { ps::Schedule{setting.text}; });
}

void check_regularizer(const Setting& setting, OptimizerKeys&) {
  check_text(setting, [&] { ps::GradientPolicy(setting.text, ""); });
}

void check_clip(const Setting& setting, OptimizerKeys&) {
  if (setting.text.empty()) return;
  check_text(setting, [&] {
    const Call call(setting.text);
    if (call.name() != "norm" && call.name() != "global_norm") {
      ps::GradientPolicy("", setting.text);
      return;
    }
    call.expect("clip", 1, {});
    check<ConfigError>(call.number(0, "limit") > 0, "'", setting.text, "': must be above 0");
  });
}

void check_nan_policy(const Setting& setting, Runner&) {
  check_text(setting, [&] { parse_check_nan(setting.text); });
}

void check_memory(const Setting& setting, Runner&) {
  if (setting.text.empty()) return;
  check_text(setting, [&] { parse_memory(setting.text, "a limit of memory"); });
}

void check_store(const Setting& setting, TableKeys&) {
  if (setting.text.empty()) return;
  check_text(setting, [&] {
    const std::string name = Call(setting.text).name();
    const std::vector<std::string> kinds = names_of(ps::builtin_tables());
    if (std::ranges::find(kinds, name) != kinds.end()) return;
    const std::string near = nearest(name, kinds);
    fail<ConfigError>("'", setting.text, "': there is no such store",
                      near.empty() ? "" : ", did you mean " + near + "?");
  });
}

void check_entry(const Setting& setting, TableKeys&) {
  check_text(setting, [&] { ps::Entry{setting.text}; });
}

void check_init(const Setting& setting, TableKeys&) {
  check_text(setting, [&] { ps::Initializer{setting.text}; });
}

template <class T>
constexpr ConfigKey<T> path(std::string_view name, std::string T::*field,
                            std::string_view meaning) {
  return {.name = name, .field = field, .meaning = meaning, .path = true};
}

template <class T>
constexpr ConfigKey<T> choice(std::string_view name, std::string T::*field,
                              std::string_view meaning, std::string_view choices) {
  return {.name = name, .field = field, .meaning = meaning, .choices = choices};
}

template <class T>
constexpr ConfigKey<T> checked(std::string_view name, typename ConfigKey<T>::Field field,
                               std::string_view meaning, void (*check)(const Setting&, T&)) {
  return {.name = name, .field = field, .meaning = meaning, .check = check};
}

constexpr const char* kPythonReader =
    "a Python object inside the trainer; a program that is named by pipe_command can read instead";
constexpr const char* kOutVec =
    "writes one parameter as text; argosy's saved model holds every table and is read by its tools";
constexpr const char* kDump = "fields are not dumped while training; infer writes predictions";
constexpr const char* kInsId =
    "ids and content of instances are not carried; audit says which lines a batch came from";
constexpr const char* kHdfs =
    "data and models are files of this machine; copy them first, or let pipe_command fetch them";
constexpr const char* kFederated = "federated training is not a part of argosy";
constexpr const char* kOnline =
    "training by days and passes is not a part of argosy; run once per pass, with model_init_path";
constexpr const char* kOnlineThreads =
    "belongs to PaddleRec's online trainer; thread_num and reader_threads are the threads here";

using R = Runner;
const auto kRunner = std::to_array<ConfigKey<Runner>>({
    path<Runner>("train_data_dir", &R::train_data_dir,
                 "folder, file or pattern of the data to train with"),
    path<Runner>("test_data_dir", &R::test_data_dir, "the same for inference"),
    checked<Runner>("generate", &R::generate,
                    "data to make where `train_data_dir` does not exist, as "
                    "`criteo(rows=1000000, vocab=1000, seed=1, files=8, format=multislot)`",
                    check_call),
    {"train_batch_size", &R::train_batch_size, "instances in a batch", kBatch},
    {"infer_batch_size", &R::infer_batch_size, "the same for inference", kBatch},
    {"epochs", &R::epochs, "passes over the data", kFromOne},
    {"print_interval", &R::print_interval, "steps between two lines of progress", kFromOne},
    checked<Runner>(
        "reader_type", &R::reader_type,
        "`QueueDataset` (or `queue`) streams the files; `InmemoryDataset` (`memory`) loads them "
        "first; `DataLoader` and `RecDataset` leave out a last batch that is not full and use no "
        "`pipe_command`",
        check_reader_type),
    checked<Runner>("infer_reader_type", &R::infer_reader_type,
                    "the same for inference; without it that of `reader_type`",
                    check_infer_reader_type),
    checked<Runner>(
        "reader", &R::reader,
        "format of the lines, a parser of `argosy/data/parsers/` such as `criteo(hash=1000001)`; "
        "without it what `train_reader_path` names, or `multislot`. `criteo` alone takes its hash "
        "from `hyper_parameters.sparse_feature_number`. `mnist`: no lines, but the images and "
        "labels "
        "of `train_data_dir`, a folder with MNIST's four files, else of `$ARGOSY_DATA/mnist`; "
        "where "
        "there are none, made-up digits",
        check_call),
    {"train_reader_path", &R::train_reader_path,
     "a parser, as `reader`; or `criteo_reader`, PaddleRec's `click:0 dense_feature:0.1 1:737395`. "
     "Another Python module is refused, unless a `pipe_command` reads"},
    {"infer_reader_path", &R::infer_reader_path, "the same for inference"},
    {"pipe_command", &R::pipe_command,
     "program that turns each file, on its stdin, into lines; runs in the YAML's folder. One that "
     "ends in `.py` gets the paths of the YAML and of its folder as arguments"},
    choice<Runner>(
        "empty_slot", &R::empty_slot,
        "what an instance without a value in a slot is: a bad line, padded with 0, or empty "
        "(`inputs.ids_per_slot: any`)",
        "error pad empty"),
    {"max_bad_ratio", &R::max_bad_ratio, "share of lines that may be bad; above it the run stops",
     kShare},
    {"shuffle", &R::shuffle,
     "shuffles the instances in each epoch; not with `QueueDataset`, which streams"},
    {"split_file_list", &R::split_file_list,
     "True: every worker sees all files and takes its share, then files of workers that are slow "
     "or "
     "lost; False: it takes all it sees; not "
     "given: only ranks without servers take shares"},
    {"reader_threads", &R::reader_threads,
     "threads that read and parse, at most one per file; 0: the larger of `num_workers` and "
     "`thread_num`, or 1 where the run is `deterministic`",
     kThreads},
    {"num_workers", &R::num_workers, "PaddleRec's name for `reader_threads`", kThreads},
    {"dataset_debug", &R::dataset_debug, "prints how long reading and computing took"},
    {"audit", &R::audit, "checks that every line was delivered exactly once"},
    {"thread_num", &R::thread_num, "threads that compute", Limits{1, 1024}},
    {"deterministic", &R::deterministic, "the same bits for any `thread_num`"},
    {"seed", &R::seed, "of first values, order and dropout", kFromZero},
    {.name = "check_nan",
     .field = &R::check_nan,
     .meaning = "what is done about a loss or gradient that is NaN or infinite: `fail` ends the "
                "run, naming the step and the first such variable, `warn` says so and goes on, "
                "`off` does not look; True is `fail`, False `off`. A model with such a value is "
                "never saved",
     .check = check_nan_policy},
    choice<Runner>(
        "graph", &R::graph,
        "`static` records the model once; `dynamic` runs it anew for each batch, with the "
        "same results: what `tools/static_trainer.py` and `tools/trainer.py` choose",
        "static dynamic"),
    choice<Runner>("sync_mode", &R::sync_mode,
                   "how workers share parameters; without roles in the environment the run is "
                   "local and says so",
                   kModes),
    choice<Runner>("embedding_mode", &R::embedding_mode,
                   "of ranks without servers: every rank has all rows of the tables, or each has a "
                   "part, so that a table may be larger than a process",
                   "replicated sharded"),
    {"geo_step", &R::geo_step, "steps between two exchanges of `sync_mode: geo`", kFromOne},
    choice<Runner>("geo_scale", &R::geo_scale,
                   "what the servers of `sync_mode: geo` add up: the mean of the workers' "
                   "differences, as Paddle does, or their sum",
                   "mean sum"),
    checked<Runner>(
        "memory_limit", &R::memory_limit,
        "bytes, as `2G` or `512M`, that the rows of all tables may take in the memory of "
        "each server, each rank and a local run, shared out by the tables' sizes; other "
        "rows are on its disk, without limit. Empty: all rows are in memory",
        check_memory),
    {"use_fleet", &R::use_fleet, "accepted: a launcher decides, without one the run is local"},
    checked<Runner>("use_gpu", &R::use_gpu,
                    "trains on the device of FLAGS_selected_gpus, else the first", check_gpu),
    {"use_auc", &R::use_auc, "shows the AUC at the end of each epoch"},
    {"auc_num", &R::auc_num, "how many of the model's AUC meters that line shows", kFromOne},
    choice<Runner>("example_count_method", &R::example_count_method,
                   "what the speed counts: instances, or ids of all slots", "example word"),
    path<Runner>("model_save_path", &R::model_save_path, "a folder per epoch is saved below it"),
    {"save_interval", &R::save_interval,
     "steps between two checkpoints; 0: only at the end of each epoch", kFromZero},
    checked<Runner>("checkpoint_interval", &R::checkpoint_interval,
                    "how often servers with journals make a checkpoint while training goes on: "
                    "60s, 10m, 2h, or a number of steps of the first worker; empty: never",
                    check_cut_interval),
    {"checkpoint_keep", &R::checkpoint_keep, "how many of these are kept", kFromOne},
    {"resume", &R::resume,
     "goes on from the servers' journals, or from the newest checkpoint below `model_save_path`"},
    path<Runner>("model_init_path", &R::model_init_path, "saved model to start from"),
    path<Runner>("warmup_model_path", &R::warmup_model_path,
                 "the same, as PaddleRec's parameter server calls it"),
    {"model_path", &R::model_path,
     "PaddleRec's Python file of the model: not used, `model` or `network` names the model here"},
    path<Runner>("infer_load_path", &R::infer_load_path,
                 "folder of the epochs to infer with; without it `model_save_path`"),
    {"infer_start_epoch", &R::infer_start_epoch, "the first of them", kFromZero},
    {"infer_end_epoch", &R::infer_end_epoch, "one past the last of them; 0: `epochs`", kFromZero},
    {"use_inference", &R::use_inference, "also exports an inference model when saving"},
    {"save_inference_feed_varnames", &R::save_inference_feed_varnames,
     "inputs of that model; it has all that its outputs need, others are an error"},
    {"save_inference_fetch_varnames", &R::save_inference_fetch_varnames,
     "predictions of the model to export; empty: all of them"},
    {"use_xpu", {}, "there is no such device"},
    {"use_npu", {}, "there is no such device"},
    {"use_visual", {}, "no log of VisualDL is written; print_interval sets the lines of progress"},
    {"batch_generator", {}, kPythonReader},
    {"user_define_reader", {}, kPythonReader},
    {"use_out_vec", {}, kOutVec},
    {"out_vec_path", {}, kOutVec},
    {"emb_weight_name", {}, kOutVec},
    {"use_save_data", {}, "read data are not written again; a pipe_command can tee them"},
    {"need_dump", {}, kDump},
    {"dump_fields_path", {}, kDump},
    {"dump_fields", {}, kDump},
    {"dump_param", {}, kDump},
    {"need_train_dump", {}, kDump},
    {"need_infer_dump", {}, kDump},
    {"train_dump_fields_dir", {}, kDump},
    {"infer_dump_fields_dir", {}, kDump},
    {"parse_ins_id", {}, kInsId},
    {"parse_content", {}, kInsId},
    {"fs_name", {}, kHdfs},
    {"fs_ugi", {}, kHdfs},
    {"fs_client", {}, kHdfs},
    {"with_coordinator", {}, kFederated},
    {"local_sparse", {}, kFederated},
    {"remote_sparse", {}, kFederated},
    {"days", {}, kOnline},
    {"pass_per_day", {}, kOnline},
    {"split_interval", {}, kOnline},
    {"split_per_pass", {}, kOnline},
    {"start_day", {}, kOnline},
    {"end_day", {}, kOnline},
    {"checkpoint_per_pass", {}, kOnline},
    {"save_delta_frequency", {}, kOnline},
    {"save_first_base", {}, kOnline},
    {"data_donefile", {}, kOnline},
    {"data_sleep_second", {}, kOnline},
    {"prefetch", {}, kOnline},
    {"infer_data_dir", {}, kOnline},
    {"shuffle_thread_num", {}, kOnlineThreads},
    {"preload_thread_num", {}, kOnlineThreads},
    {"train_thread_num", {}, kOnlineThreads},
    {"infer_thread_num", {}, kOnlineThreads},
});

using O = OptimizerKeys;
const auto kOptimizer = std::to_array<ConfigKey<OptimizerKeys>>({
    {"class", &O::rule,
     "`SGD`, `Momentum`, `Adam`, `AdamW`, `Adagrad`, `Ftrl`, `Lamb` or `Lars`, or a rule of "
     "`argosy/ps/rules/` with its settings such as `adam(beta1=0.8)`"},
    checked<OptimizerKeys>(
        "learning_rate", &O::learning_rate,
        "a number or a schedule of `argosy/ps/schedule.h` such as `cosine(0.1, steps=10000)`",
        check_rate),
    {"decay_steps", &O::decay_steps,
     "with `decay_rate`: the rate is multiplied by it once in so many steps, smoothly; 0: never",
     kFromZero},
    {"decay_rate", &O::decay_rate, "see `decay_steps`", kShare},
    choice<OptimizerKeys>("strategy", &O::strategy, "`runner.sync_mode`, where that is not given",
                          kModes),
    checked<OptimizerKeys>("adam_lazy_mode", &O::adam_lazy_mode,
                           "only True: rows change when a batch uses them", check_lazy_mode),
    checked<OptimizerKeys>("lazy_mode", &O::adam_lazy_mode, "another name for `adam_lazy_mode`",
                           check_lazy_mode),
    {"beta1", &O::beta1, "of Adam, AdamW, Lamb", kBelowOne},
    {"beta2", &O::beta2, "of Adam, AdamW, Lamb", kBelowOne},
    {"epsilon", &O::epsilon, "of Adam, AdamW, Adagrad, Lamb, Lars", kFromZero},
    {"momentum", &O::momentum, "of Momentum, Lars", kBelowOne},
    {"weight_decay", &O::weight_decay,
     "of AdamW, Lamb, Lars; with another class the same as `regularizer: l2(x)`", kFromZero},
    checked<OptimizerKeys>("regularizer", &O::regularizer, "`l1(x)` or `l2(x)`", check_regularizer),
    checked<OptimizerKeys>(
        "clip", &O::clip,
        "of gradients: `value(x)`, `norm(x)` for each parameter, `global_norm(x)` for all together",
        check_clip),
});

using T = TableKeys;
constexpr auto kTable = std::to_array<ConfigKey<TableKeys>>({
    {"dim", &T::dim, "floats in a row; for a `network` only, where it is needed", kDim},
    {"size", &T::size,
     "ids are below it, larger ones are bad; 0: any id. A zoo model has "
     "`hyper_parameters.sparse_feature_number`",
     kFromZero},
    checked<TableKeys>("init", &T::init, "first values of a row; for a `network` only", check_init),
    checked<TableKeys>("rule", &T::rule, "how rows are updated; without it as everything else",
                       check_rule<TableKeys>),
    checked<TableKeys>("learning_rate", &T::learning_rate, "the same of the rate",
                       check_rate<TableKeys>),
    checked<TableKeys>("entry", &T::entry, "which ids get a row, a text of `argosy/ps/entry.h`",
                       check_entry),
    {"track_unseen", &T::track_unseen, "counts how long a row was not used, so that it can go"},
    checked<TableKeys>(
        "store", &T::store,
        "where the rows are, a file of `argosy/ps/tables/`: `memory`, or "
        "`log(memory=2G)` with so many bytes of them in memory and the others on the "
        "disk; without it `runner.memory_limit` decides",
        check_store),
});

}  // namespace

std::span<const ConfigKey<Runner>> runner_keys() { return kRunner; }
std::span<const ConfigKey<OptimizerKeys>> optimizer_keys() { return kOptimizer; }
std::span<const ConfigKey<TableKeys>> table_keys() { return kTable; }

std::string config_reference() {
  const std::string head = "| key | expected | default | meaning |\n|---|---|---|---|\n";
  return "### runner\n\n" + head + taken_rows(runner_keys()) +
         "\n### hyper_parameters.optimizer\n\n" + head + taken_rows(optimizer_keys()) +
         "\n### tables.NAME\n\n" + head + taken_rows(table_keys()) +
         "\n### runner: refused\n\nA value that asks for nothing (`False`, `0`, an empty text or "
         "list) is accepted.\n\n| key | why |\n|---|---|\n" +
         refused_rows(runner_keys());
}

}  // namespace argosy
