#include "argosy/config/runner.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>

#include "argosy/base/error.h"
#include "argosy/base/memory_size.h"
#include "argosy/base/mutex.h"
#include "argosy/config/sources.h"
#include "argosy/data/lines.h"
#include "argosy/data/parse_lines.h"
#include "argosy/device/devices.h"
#include "argosy/job/cuts.h"
#include "argosy/job/job.h"
#include "argosy/job/saves.h"
#include "argosy/modes/mode.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

/// Chunks of a batch in a deterministic run: the same for any number of threads.
constexpr int kChunks = 4;

/// Lines as PaddleRec's loggers write them.
class Log {
 public:
  explicit Log(std::FILE* out) : out_(out), terminal_(::isatty(::fileno(out)) == 1) {}

  void info(const std::string& message) const {
    const std::time_t now = std::time(nullptr);
    std::tm local{};
    localtime_r(&now, &local);
    // On a terminal a live line may be here.
    fmt::print(out_, "{}{:%Y-%m-%d %H:%M:%S} - INFO - {}\n", terminal_ ? "\r\033[K" : "", local,
               message);
    std::fflush(out_);
  }
  std::FILE* live() const { return terminal_ ? out_ : nullptr; }

 private:
  std::FILE* out_;
  bool terminal_;
};

void tell_digits(const Config& config, const Log& log) {
  const std::string folder = digits_folder(config);
  log.info(folder.empty() ? "no MNIST in train_data_dir or below ARGOSY_DATA: digits are made up"
                          : "MNIST from " + folder);
}

/// How this process trains. Throws ConfigError where its role and the configuration do not go
/// together.
Strategy strategy_of(const Config& config, const Role& role) {
  const Runner& runner = config.runner;
  Strategy strategy;
  strategy.threads = static_cast<int>(runner.thread_num);
  strategy.geo_step = static_cast<int>(runner.geo_step);
  strategy.geo_mean = runner.geo_scale == "mean";
  if (role.kind == RoleKind::local) return strategy;
  if (role.is_rank()) {
    strategy.mode = "collective";
    strategy.collective.deterministic = runner.deterministic;
    strategy.collective.embedding =
        parse_embedding_mode(runner.embedding_mode, "runner.embedding_mode");
    return strategy;
  }
  check<ConfigError>(
      runner.embedding_mode == Runner().embedding_mode, "runner.embedding_mode is ",
      runner.embedding_mode,
      ", which is for ranks without servers: servers always share the rows; this is ", role.text());
  strategy.mode = runner.sync_mode;
  check<ConfigError>(mode(strategy.mode).needs == Mode::Needs::servers, "runner.sync_mode is ",
                     strategy.mode, ", but the environment says that this is ", role.text());
  return strategy;
}

TrainerOptions worker_options(const Config& config, const ModelSetup& setup, const Role& role) {
  TrainerOptions options = trainer_options(config, setup);
  options.strategy = strategy_of(config, role);
  return options;
}

void run_server(const Config& config, const Job& job) {
  const ModelSetup setup = make_model(config);
  const TrainerOptions options = worker_options(config, setup, job.role());
  const Plan plan = record(setup.model, options).plan;
  const auto servers = static_cast<uint32_t>(job.role().servers.size());
  serve(job, placement_of(plan, options.strategy, servers), {.strategy = options.strategy});
}

/// Whether files are dealt out to workers. Ranks do so unless configured otherwise.
bool deals_out_files(const Config& config, const Role& role) {
  const bool asked = config.given.contains("runner.split_file_list");
  return role.is_rank() && !asked ? true : config.runner.split_file_list;
}

/// Deals out the files to the workers: those that are streamed as a queue, unless there are ranks,
/// which cannot go on without each other anyway. `epoch` tells the present one.
void deal_out(const Config& config, Job& job, FileOptions& options, std::function<int()> epoch) {
  if (!job.shared() || !deals_out_files(config, job.role())) return;
  const size_t count = options.files.size();
  const auto check_share = [&](bool has_some) {
    check<ConfigError>(has_some, "worker ", job.role().index,
                       " has no file: ", config.train.data_dir, " has ", count, " for ",
                       job.role().worker_num, " workers");
  };
  if (job.collective() || !streams(config)) {
    options.files = job.share(std::move(options.files));
    return check_share(!options.files.empty() || job.batches().count > 1);
  }
  check_share(static_cast<size_t>(job.role().index) < count);
  // Steps that wait for each other gain nothing from quick workers, and should be repeatable.
  const bool fixed = mode(strategy_of(config, job.role()).mode).sync || config.runner.deterministic;
  options.shared =
      job.queue(options.files, fixed ? ps::Stealing::off : ps::Stealing::on, std::move(epoch));
}

/// How data are dealt out to ranks; "" without ranks.
std::string shares_text(const Config& config, const Job& job) {
  if (!job.collective()) return "";
  if (job.batches().count > 1)
    return fmt::format("data: every {} batches of all files, as there are fewer files than ranks",
                       job.batches().count);
  return deals_out_files(config, job.role())
             ? fmt::format("data: the files are dealt out to {} ranks", job.role().worker_num)
             : "data: every rank takes all files, as runner.split_file_list is False";
}

std::string metrics_text(const std::vector<Metric>& metrics) {
  std::string text;
  for (const Metric& metric : metrics)
    text += fmt::format("{}: {:.6f}, ", metric.name, metric.value);
  return text;
}

/// An exported model takes the inputs its outputs need; naming others is a mistake.
void check_feeds(const Config& config, const Plan& plan) {
  std::vector<std::string> known = config.inputs.slots;
  for (const ColumnFeed& column : plan.layout.columns) known.push_back(column.input);
  for (const std::string& name : config.runner.save_inference_feed_varnames)
    check<ConfigError>(std::ranges::find(known, name) != known.end(),
                       "runner.save_inference_feed_varnames: the model has no input '", name,
                       "', expected some of ", fmt::format("{}", fmt::join(known, ", ")));
}

/// Logs silent sources, and shows in the status that they block this process. Thread safety: full.
class SilentSources {
 public:
  SilentSources(const Log& log, Activity& activity) : log_(log), activity_(activity) {}

  SourceOptions options() {
    return {.log = [this](const SourceNews& news) { hear(news); }};
  }

 private:
  void hear(const SourceNews& news) {
    if (!news.line.empty()) log_.info(news.line);
    const Lock lock(mutex_);
    if (news.note.empty())
      silent_.erase(news.source);
    else
      silent_[news.source] = news.note;
    activity_.note(silent_.empty() ? "" : silent_.begin()->second);
  }

  const Log& log_;
  Activity& activity_;
  Mutex mutex_;
  std::map<std::string, std::string> silent_ GUARDED_BY(mutex_);  // their notes, by source
};

/// The loop of one training: what is printed and what is saved when.
class Training {
 public:
  Training(Env& env, const Config& config, Job& job, std::FILE* out)
      : env_(env),
        config_(config),
        runner_(config.runner),
        log_(out),
        setup_(make_model(config)),
        job_(job),
        made_(make_trainer(job, setup_.model, worker_options(config, setup_, job.role()))),
        trainer_(*made_),
        status_(job.report(trainer_.activity())),
        silent_(log_, trainer_.activity()) {
    check_feeds(config, trainer_.plan());
    trainer_.activity().begin(Doing::generating);
    if (job.first()) generate_if_missing(env, config, out);
    trainer_.activity().begin(Doing::meeting);
    job.barrier(Milestone::data_are_there());
    trainer_.activity().begin(Doing::reading);
    if (job.first() && reads_digits(config.train)) tell_digits(config, log_);
    train_ = make_train_data(
        env, config, trainer_.plan(), setup_.tables,
        [&](FileOptions& options) { deal_out(config, job, options, [this] { return epoch_; }); },
        silent_.options());
    train_ = share_of(std::move(train_), job.batches());
    if (const std::string text = shares_text(config, job); !text.empty()) log_.info(text);
    if (job.first())
      test_ = make_test_data(env, config, trainer_.plan(), setup_.tables, silent_.options());
  }

  TrainResult run() {
    FitOptions options;
    options.epochs = static_cast<int>(runner_.epochs);
    options.show = log_.live();
    options.on_step_every = static_cast<uint64_t>(runner_.print_interval);
    options.on_step = [this](const Progress& progress) { return tell_step(progress); };
    options.on_epoch = [this](const Progress& progress, const auto&) {
      return end_epoch(progress);
    };
    options.join = [this](MetricTally& metrics) { job_.join(Milestone::trained(epoch_), metrics); };
    // Checkpoints within an epoch need all workers at one point of their data.
    options.checkpoint_every = job_.shared() ? 0 : static_cast<uint64_t>(runner_.save_interval);
    options.checkpoint = [this](const ResumePoint& point) {
      trainer_.save(runner_.model_save_path + "/checkpoint", point);
    };
    options.resume = start();
    if (options.resume) epoch_ = options.resume->epoch;
    std::optional<Cuts> cuts;
    if (takes_cuts()) {
      cuts.emplace(
          env_,
          Cuts::Asking{
              .prepare = [this] { return trainer_.prepare_cut(); },
              .begin = [this](const std::string& folder) { return trainer_.begin_cut(folder); }},
          CutOptions{.folder = fs::absolute(runner_.model_save_path),
                     .interval = parse_cut_interval(runner_.checkpoint_interval),
                     .keep = static_cast<size_t>(runner_.checkpoint_keep),
                     .log = [this](const std::string& line) { log_.info(line); }});
      options.after_step = [&cuts](int epoch) { cuts->after_step(epoch); };
    }
    if (epoch_ > options.epochs) {
      log_.info(fmt::format("all {} epochs are trained, nothing is left to do", options.epochs));
      // A first worker that was lost after the last epoch still has to test.
      if (job_.standing() == 0 || !job_.first()) return leave();
    } else {
      const Progress last = trainer_.fit(*train_, options);
      result_.train = last.metrics;
      result_.examples_per_second = last.samples_per_second();
    }
    cuts.reset();  // before its servers go
    trainer_.first_does(job_.first(), [this] { test(); });
    return leave();
  }

 private:
  bool takes_cuts() const {
    if (!job_.first() || parse_cut_interval(runner_.checkpoint_interval).never()) return false;
    if (!job_.role().servers.empty()) return true;
    log_.info(
        "runner.checkpoint_interval: there are no servers to make checkpoints of; save_interval is "
        "for local runs");
    return false;
  }

  TrainResult leave() {
    const std::string untrained = job_.untrained();
    trainer_.leave();
    check<IoError>(untrained.empty(), untrained);
    return result_;
  }

  void test() {
    if (test_ == nullptr) return;
    result_.test = trainer_.evaluate(*test_);
    log_.info(
        fmt::format("test: {}on {}", metrics_text(result_.test),
                    reads_digits(config_.infer) ? "the test digits" : config_.infer.data_dir));
    compare_with_truth();
  }

  /// The best possible AUC of generated data is known.
  void compare_with_truth() {
    const auto best = best_auc(env_, config_.infer.data_dir);
    const auto ours = std::ranges::find(result_.test, "auc", &Metric::name);
    if (!best || ours == result_.test.end()) return;
    constexpr double kChance = 0.5;
    log_.info(
        fmt::format("test AUC {:.4f}, the best possible is {:.4f}: {:.3f} of what can be "
                    "learned beyond chance",
                    ours->value, *best, (ours->value - kChance) / (*best - kChance)));
  }

  /// Loads the configured first model. In a job the first worker does, and tells the others with
  /// which epoch they begin.
  std::optional<ResumePoint> start() {
    const Milestone loaded = Milestone::model_is_loaded();
    if (job_.standing() > loaded.number) return rejoin();
    std::optional<ResumePoint> point;
    if (!job_.is_over(loaded)) trainer_.first_does(job_.first(), [&] { point = load(); });
    if (!job_.shared()) return point;
    trainer_.activity().begin(Doing::meeting);
    const int epoch = std::stoi(job_.from_first(loaded, std::to_string(point ? point->epoch : 1)));
    job_.barrier(Milestone::begins(epoch));
    if (job_.collective()) trainer_.take_loaded();
    if (runner_.resume) trainer_.communicator().replay(job_.ask_trained());
    return ResumePoint{.epoch = epoch};
  }

  /// Resumes as a restarted worker, where the others are: with the save of an epoch that all have
  /// trained, or with the beginning of an epoch.
  ResumePoint rejoin() {
    int last = 0;
    while (job_.is_over(Milestone::trained(last + 1))) ++last;
    const bool saved = job_.is_over(Milestone::saved(last));
    if (job_.first()) load_states(saved ? last : last - 1);
    if (!saved) {
      log_.info(fmt::format("{}: epoch {} is trained and to be saved",
                            job_.goes_on_from_journals() ? "resume from the servers' journals"
                                                         : "this worker was started again",
                            last - 1));
      finish_epoch(last);
    }
    if (last < runner_.epochs) say_rejoined(last + 1);
    return {.epoch = last + 1};
  }

  void say_rejoined(int epoch) const {
    const Trained& trained = job_.trained();
    const uint64_t most = train_->most_passes();
    const bool within = (trained.pass + most - 1) / most == static_cast<uint64_t>(epoch);
    const uint64_t batches = within ? trained.batches : 0;
    const std::string replay = replay_text(strategy_of(config_, job_.role()));
    log_.info(
        job_.goes_on_from_journals()
            ? fmt::format("resume from the servers' journals: epoch {}, pass {}, batch {}, step {} "
                          "of this worker; the batches before that are {}",
                          epoch - 1, within ? (trained.pass - 1) % most : 0, batches, trained.steps,
                          replay.substr(replay.find("computed")))
            : fmt::format("this worker was started again and goes on with epoch {}: the servers "
                          "have {} batches of it, {}",
                          epoch - 1, batches, replay));
  }

  /// Restores running means and the like, which were lost with the process, from an epoch's save.
  void load_states(int epoch) {
    const std::string folder = epoch_folder(runner_.model_save_path, epoch - 1);
    if (is_save(env_, folder)) trainer_.load_states(folder);
  }

  std::optional<ResumePoint> load() {
    if (job_.resumes()) {
      if (const auto save = newest_save(env_, runner_.model_save_path)) {
        const ResumePoint point = trainer_.load(fs::absolute(save->folder));
        log_.info(fmt::format("resume from {}: epoch {}, {} batches of it are done", save->folder,
                              point.epoch - 1, point.data.batches));
        resume_from_cut(save->folder);
        return point;
      }
      log_.info(fmt::format("resume: no save below {}, starting anew", runner_.model_save_path));
    }
    const std::string& first =
        runner_.model_init_path.empty() ? runner_.warmup_model_path : runner_.model_init_path;
    if (first.empty()) return std::nullopt;
    trainer_.load(fs::absolute(first));
    log_.info("load model from " + first);
    return std::nullopt;
  }

  /// Lets the servers tell every worker how much of its data is in a cut.
  void resume_from_cut(const std::string& folder) {
    const std::vector<Trained> trained = cursors_of_cut(env_, folder);
    if (trained.empty()) return;
    const auto workers = static_cast<size_t>(job_.role().worker_num);
    if (job_.role().servers.empty() || trained.size() != workers)
      return log_.info(fmt::format(
          "{} was made with {} workers, there are {}: its epoch is trained from the beginning",
          folder, trained.size(), job_.role().servers.empty() ? 0 : workers));
    job_.resume(trained);
    for (size_t worker = 0; worker < workers; ++worker)
      log_.info(fmt::format("worker {} goes on behind batch {}: those before it {}", worker,
                            trained[worker].batches,
                            replay_text(strategy_of(config_, job_.role()))));
  }

  Next tell_step(const Progress& progress) {
    // Averages over the steps since the previous line, like PaddleRec's.
    const uint64_t from = std::max(told_.step, progress.resumed_at);
    const double steps = static_cast<double>(progress.step - from);
    const double samples = static_cast<double>(progress.samples - told_.samples);
    const double seconds = progress.seconds - told_.seconds;
    log_.info(fmt::format(
        "epoch: {}, batch_id: {}, {}avg_reader_cost: {:.5f} sec, avg_batch_cost: {:.5f} sec, "
        "avg_samples: {:.5f}, ips: {:.5f} ins/s",
        progress.epoch - 1, progress.step - 1, metrics_text(progress.metrics),
        (progress.reading - told_.reading) / steps, seconds / steps, samples / steps,
        seconds > 0 ? samples / seconds : 0));
    told_ = progress;
    return Next::go_on;
  }

  Next end_epoch(const Progress& progress) {
    told_ = {};
    ++result_.epochs;
    log_.info(fmt::format("epoch: {} done, {}epoch time: {:.2f} s, ips: {:.5f} {}/sec",
                          progress.epoch - 1, metrics_text(shown_at_end(progress.metrics)),
                          progress.seconds, per_second(progress), runner_.example_count_method));
    if (config_.runner.dataset_debug)
      log_.info(fmt::format("reading: {:.2f} s of {:.2f} s were spent waiting for data, {:.1f} %",
                            progress.reading, progress.seconds,
                            100 * progress.reading / std::max(progress.seconds, 1e-9)));
    for (const std::string& note : train_->notes()) log_.info(note);
    for (const std::string& note : trainer_.communicator().notes()) log_.info(note);
    finish_epoch(progress.epoch);
    ++epoch_;
    return Next::go_on;
  }

  void finish_epoch(int epoch) {
    trainer_.first_does(job_.first(), [&] { save(epoch); });
    trainer_.activity().begin(Doing::meeting);
    job_.barrier(Milestone::saved(epoch));
  }

  void save(int epoch) {
    const std::string folder = epoch_folder(runner_.model_save_path, epoch - 1);
    trainer_.save(fs::absolute(folder), {.epoch = epoch + 1});
    if (runner_.use_inference)
      trainer_.export_inference(folder, runner_.save_inference_fetch_varnames);
    log_.info("Already save model in " + folder);
  }

  /// use_auc and auc_num say how many AUCs the line of an epoch has.
  std::vector<Metric> shown_at_end(const std::vector<Metric>& metrics) const {
    std::vector<Metric> shown;
    int64_t aucs = 0;
    std::ranges::copy_if(metrics, std::back_inserter(shown), [&](const Metric& metric) {
      if (!metric.name.ends_with("auc")) return true;
      return runner_.use_auc && aucs++ < runner_.auc_num;
    });
    return shown;
  }

  double per_second(const Progress& progress) const {
    const double ids = static_cast<double>(config_.inputs.slots.size());
    return progress.samples_per_second() * (runner_.example_count_method == "word" ? ids : 1);
  }

  Env& env_;
  const Config& config_;
  const Runner& runner_;
  Log log_;
  ModelSetup setup_;
  Job& job_;
  const std::unique_ptr<Trainer> made_;
  Trainer& trainer_;
  const std::unique_ptr<StatusReport> status_;
  SilentSources silent_;
  std::unique_ptr<Dataset> train_, test_;
  Progress told_;
  int epoch_ = 1;  // that is trained
  TrainResult result_;
};

void introduce(const Config& config, const Log& log, std::FILE* out) {
  fmt::print(out, "{}", describe(config));
  for (const std::string& note : config.notes) log.info(note);
}

bool is_dynamic(const Config& config) { return config.runner.graph == "dynamic"; }

/// Logs this process's role, or that the run is local although the configuration has a mode.
void introduce(const Config& config, const Job& job, const Log& log) {
  const Strategy strategy = strategy_of(config, job.role());
  if (config.runner.use_gpu && !job.role().is_server())
    log.info("computes on " +
             (is_dynamic(config) ? "the CPU: runner.use_gpu is for graph static"
                                 : device::devices().label(device::selected_device().value_or(0))));
  if (job.shared())
    log.info(fmt::format(
        "{}, sync_mode {}{}", job.role().text(), strategy.mode,
        job.collective() ? fmt::format(", embedding_mode {}", name(strategy.collective.embedding))
                         : ""));
  else if (config.given.contains("runner.sync_mode") && config.runner.sync_mode != Strategy().mode)
    log.info(
        fmt::format("no TRAINING_ROLE in the environment: training is local, sync_mode {} "
                    "needs servers and workers",
                    config.runner.sync_mode));
}

/// If files are dealt out, every worker needs one.
void check_shares(const Config& config, uint64_t files, uint64_t workers) {
  check<ConfigError>(!config.runner.split_file_list || workers <= files, config.train.data_dir,
                     ": runner.split_file_list deals out ", files, " file", files == 1 ? "" : "s",
                     " to ", workers, " workers, expected a file for each or fewer workers");
}

/// Parses the beginning of a file as a run would.
void check_file(const FileOptions& options, const std::string& path, const Log& log) {
  constexpr size_t kRows = 100;
  // Reading from a FIFO would consume its data.
  if (!fs::is_regular_file(path)) return log.info(path + ": is no plain file and not looked at");
  const auto parser = make_parser(options.parser, options.slots);
  Lines lines(options.pipe.command.empty() ? open_file(path) : open_pipe(path, options.pipe));
  Columns columns(parser->slots());
  LineTally tally(options.max_bad_ratio);
  parse_lines(lines, *parser, kRows, columns, tally);
  tally.finish();
  check<DataError>(columns.rows() > 0, path, ": has no instance");
  log.info(fmt::format("{}: the first {} instances parse, {} bad lines", path, columns.rows(),
                       tally.bad_lines()));
}

}  // namespace

TrainerOptions trainer_options(const Config& config, const ModelSetup& setup) {
  TrainerOptions options;
  options.optimizer = config.optimizer;
  options.tables = setup.tables;
  options.strategy.threads = static_cast<int>(config.runner.thread_num);
  options.seed = static_cast<uint64_t>(config.runner.seed);
  options.check_nan = parse_check_nan(config.runner.check_nan);
  if (!config.runner.memory_limit.empty())
    options.memory_limit = parse_memory(config.runner.memory_limit, "runner.memory_limit");
  const bool dynamic = is_dynamic(config);
  options.graph = dynamic ? GraphMode::eager : GraphMode::recorded;
  // A dynamic graph runs on one thread, and needs no chunks to have the same bits each time.
  options.chunks = config.runner.deterministic && !dynamic ? kChunks : 0;
  if (config.runner.use_gpu && !dynamic) options.device = device::selected_device().value_or(0);
  return options;
}

TrainResult run_train(Env& env, const Config& config, std::FILE* out) {
  const Log log(out);
  Job job(env, role_from_env(process_environment()),
          {.saves = config.runner.model_save_path, .resume = config.runner.resume, .out = out});
  if (job.first()) introduce(config, log, out);
  introduce(config, job, log);
  if (!job.role().is_server()) return Training(env, config, job, out).run();
  run_server(config, job);
  return {};
}

std::vector<Metric> run_infer(Env& env, const Config& config, std::FILE* out) {
  const Log log(out);
  introduce(config, log, out);
  generate_if_missing(env, config, out);
  const Runner& runner = config.runner;
  const ModelSetup setup = make_model(config);
  Trainer trainer(env, setup.model, trainer_options(config, setup));
  const auto test = make_test_data(env, config, trainer.plan(), setup.tables);
  check<ConfigError>(test != nullptr, config.path, ": runner.test_data_dir '",
                     config.infer.data_dir, "' has no data to infer on");
  const std::string& folder =
      runner.infer_load_path.empty() ? runner.model_save_path : runner.infer_load_path;
  const int64_t end = runner.infer_end_epoch > 0 ? runner.infer_end_epoch : runner.epochs;
  check<ConfigError>(runner.infer_start_epoch < end, "runner.infer_start_epoch is ",
                     runner.infer_start_epoch, ", expected less than the end, ", end);
  std::vector<Metric> result;
  for (int64_t epoch = runner.infer_start_epoch; epoch < end; ++epoch) {
    const std::string save = epoch_folder(folder, epoch);
    trainer.load(save);
    log.info("load model epoch " + std::to_string(epoch) + " from " + save);
    const Env::Time start = env.now();
    result = trainer.evaluate(*test);
    log.info(fmt::format("epoch: {} done, {}epoch time: {:.2f} s", epoch, metrics_text(result),
                         std::chrono::duration<double>(env.now() - start).count()));
  }
  return result;
}

void run_check(Env& env, const Config& config, std::FILE* out, uint64_t workers) {
  const Log log(out);
  introduce(config, log, out);
  const ModelSetup setup = make_model(config);
  const Trainer trainer(env, setup.model, trainer_options(config, setup));
  size_t parameters = 0;
  for (const ps::ParameterSpec& spec : trainer.plan().parameters) parameters += spec.elements;
  log.info(fmt::format("the model is built: {} dense parameters, {} tables of rows", parameters,
                       trainer.plan().tables.size()));
  if (reads_digits(config.train)) return tell_digits(config, log);
  if (!config.runner.generate.empty() && !fs::exists(config.train.data_dir)) {
    log.info(fmt::format("{} is missing and would be generated by {}", config.train.data_dir,
                         config.runner.generate));
    return check_shares(config, generated_files(config), workers);
  }
  const FileOptions options = file_options(config, config.train, trainer.plan(), setup.tables,
                                           config.runner.train_batch_size);
  check_shares(config, options.files.size(), workers);
  static_cast<void>(make_train_data(env, config, trainer.plan(), setup.tables));
  for (const std::string& path : options.files) check_file(options, path, log);
}

}  // namespace argosy
