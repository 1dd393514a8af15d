// Training from YAML as a user runs it: the program itself, on generated click logs whose best AUC
// is known; killed at some moment and resumed; with input of every wrong kind.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <string>
#include <system_error>
#include <vector>

#include "tests/e2e/quick_folder.h"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = std::chrono::seconds(120);  // for a program that should take one
constexpr int kPipeBytes = 4096;  // small, so that a program cannot write far ahead

struct Outcome {
  int exit_code;  // -1: a signal ended it
  std::string output, errors;
};

std::string content(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// A file in memory, without a name.
struct Scratch {
  int fd = ::memfd_create("stderr", MFD_CLOEXEC);
  ~Scratch() { ::close(fd); }
  std::string text() const {
    std::string all;
    char block[512];
    for (ssize_t n = 0; (n = ::pread(fd, block, sizeof(block), std::ssize(all))) > 0;)
      all.append(block, static_cast<size_t>(n));
    return all;
  }
};

/// Starts `sh -c line` in a new process group, with stdout into a pipe.
pid_t start(const std::string& line, int& output, int errors) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category());
  ::fcntl(ends[0], F_SETPIPE_SZ, kPipeBytes);
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    ::execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
    ::_exit(127);
  }
  ::setpgid(child, child);  // both processes do; either may be first
  ::close(ends[1]);
  output = ends[0];
  return child;
}

/// Runs a program of build/bin in a folder, where it may leave files. It is killed when its output
/// holds `kill_at`, or when it takes far too long.
Outcome run(const std::string& command, const fs::path& folder, const std::string& kill_at = "") {
  const Scratch errors;
  int output = -1;
  const pid_t child = start("cd '" + folder.string() + "' && exec '" ARGOSY_BIN_DIR "'/" + command,
                            output, errors.fd);
  const auto deadline = Clock::now() + kPatience;
  std::string text;
  char block[512];
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    pollfd ready{output, POLLIN, 0};
    const bool late = left.count() <= 0 || ::poll(&ready, 1, static_cast<int>(left.count())) == 0;
    if (late) text += "\nwas killed: it took too long";
    if (late || (!kill_at.empty() && text.find(kill_at) != std::string::npos)) {
      ::kill(-child, SIGKILL);
      break;
    }
    const ssize_t n = ::read(output, block, sizeof(block));
    if (n <= 0) break;
    text.append(block, static_cast<size_t>(n));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(output);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text, errors.text()};
}

/// The first group of each match.
std::vector<std::string> all_matches(const std::string& text, const std::string& pattern) {
  const std::regex regex(pattern);
  std::vector<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at)
    found.push_back((*at)[1]);
  return found;
}

std::string last_match(const std::string& text, const std::string& pattern) {
  const std::vector<std::string> found = all_matches(text, pattern);
  return found.empty() ? "nothing like " + pattern : found.back();
}

/// The figures after "test: " or "epoch: N done, ": losses and AUCs, to the last digit printed.
const std::string kFigures = "(loss: [0-9.]+, auc: [0-9.]+, batch_auc: [0-9.]+), ";

constexpr const char* kConfig = R"(model: dnn
runner:
  train_data_dir: train
  test_data_dir: test
  reader: criteo
  train_batch_size: 50
  epochs: 2
  print_interval: 1
  use_auc: True
  save_interval: 7
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.003}
  sparse_feature_number: 100001
  sparse_feature_dim: 4
  fc_sizes: [16, 8]
)";
constexpr int kBatchSize = 50, kRows = 3000;  // in two files, both of whole batches

class TrainYaml : public testing::Test {
 public:
  TrainYaml() : folder_(argosy::e2e::quick_folder()) { write("config.yaml", kConfig); }
  ~TrainYaml() override { fs::remove_all(folder_); }

 protected:
  void write(const fs::path& name, const std::string& bytes) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void make_data() const {
    const std::string gen = "argosy gen criteo --vocab 50 --rows ";
    const Outcome train = run(gen + std::to_string(kRows) + " --files 2 --out train", folder_);
    const Outcome test = run(gen + "600 --first-row 3000 --files 1 --out test", folder_);
    ASSERT_EQ(train.exit_code + test.exit_code, 0) << train.errors << test.errors;
  }
  /// One file to train with.
  void make_data(const std::string& bytes) const { write("train/part-0", bytes); }

  Outcome train(const std::string& settings, const std::string& kill_at = "") const {
    return run("argosy train -m config.yaml -o " + settings, folder_, kill_at);
  }
  Outcome infer(const std::string& settings) const {
    return run("argosy infer -m config.yaml -o " + settings, folder_);
  }

  /// The files of a save; difference() names those that differ from another save's, "" if none.
  std::map<std::string, std::string> files(const std::string& save) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::directory_iterator(folder_ / save))
      found[entry.path().filename()] = content(entry.path());
    return found;
  }
  std::string difference(const std::string& save, const std::string& other) const {
    const auto ours = files(save), theirs = files(other);
    if (ours.size() < 2 || ours.size() != theirs.size()) return "the number of files";
    std::string names;
    for (const auto& [name, bytes] : ours)
      if (!theirs.contains(name) || theirs.at(name) != bytes) names += name + " ";
    return names;
  }

  /// A run with the first settings is killed, one with the others resumes it and must end exactly
  /// like the uninterrupted one.
  void expect_exact_resume(const std::string& whole, const std::string& kill_at,
                           const std::string& before, const std::string& after) const {
    fs::remove_all(folder_ / "killed");
    const std::string path = " runner.model_save_path=killed";
    const Outcome killed = train(before + path, kill_at);
    EXPECT_EQ(killed.exit_code, -1) << kill_at << killed.errors << killed.output;
    const Outcome resumed = train(after + path + " runner.resume=True", "");
    EXPECT_EQ(resumed.exit_code, 0) << kill_at << resumed.errors;
    EXPECT_EQ(difference("killed/1", whole + "/1"), "") << kill_at << resumed.output;
    EXPECT_EQ(all_matches(infer(after + path).output, kFigures),
              all_matches(infer(after + " runner.model_save_path=" + whole).output, kFigures));
  }

  /// A run that must end with one line, which holds these words.
  void expect_refused(const Outcome& outcome, const std::vector<std::string>& words) const {
    EXPECT_EQ(outcome.exit_code, 1) << outcome.output << outcome.errors;
    EXPECT_TRUE(outcome.errors.starts_with("argosy: ")) << outcome.errors;
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
    for (const std::string& word : words)
      EXPECT_NE(outcome.errors.find(word), std::string::npos)
          << "expected '" << word << "' in: " << outcome.errors;
  }
  void expect_training_refused(const std::string& settings,
                               const std::vector<std::string>& words) const {
    expect_refused(train(settings), words);
  }

  const fs::path folder_;
};

const std::vector<std::string> kMoments = {
    "epoch: 0, batch_id: 2,",  // before the first checkpoint
    "epoch: 0, batch_id: 30,", "Already save model in killed/0", "epoch: 1, batch_id: 15,"};

TEST_F(TrainYaml, PrintsLinesOfPaddleRecAndTheShareOfTheBestAuc) {
  const std::string settings =
      "'runner.generate=criteo(rows=3000,vocab=50,files=2)' runner.print_interval=20 "
      "runner.save_interval=0";
  const Outcome trained = train(settings);
  ASSERT_EQ(trained.exit_code, 0) << trained.errors;
  const std::string number = "[0-9.]+", log = "\n[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8} - INFO - ";
  EXPECT_EQ(all_matches(trained.output,
                        log + "epoch: 0, batch_id: ([0-9]+), loss: " + number + ", auc: " + number +
                            ", batch_auc: " + number + ", avg_reader_cost: " + number +
                            " sec, avg_batch_cost: " + number +
                            " sec, avg_samples: 50.00000, ips: " + number + " ins/s"),
            (std::vector<std::string>{"0", "20", "40"}))
      << trained.output;
  EXPECT_EQ(all_matches(trained.output, log + "epoch: ([0-9]+) done, loss: " + number +
                                            ", auc: " + number + ", epoch time: " + number +
                                            " s, ips: " + number + " example/sec"),
            (std::vector<std::string>{"0", "1"}))
      << trained.output;
  EXPECT_EQ(all_matches(trained.output, log + "Already save model in (.*)"),
            (std::vector<std::string>{"model_output/0", "model_output/1"}));
  EXPECT_TRUE(fs::exists(folder_ / "model_output/1/persistables.argosy"));
  EXPECT_EQ(all_matches(trained.output, "(train|test) was missing: generated").size(), 2U);

  const double share = std::stod(last_match(
      trained.output, "test AUC 0[.][0-9]{4}, the best possible is 0[.][0-9]{4}: (0[.][0-9]{3}) "));
  EXPECT_GT(share, 0.3) << trained.output;
  const Outcome inferred = infer(settings);
  ASSERT_EQ(inferred.exit_code, 0) << inferred.errors;
  EXPECT_EQ(last_match(inferred.output, "epoch: 1 done, " + kFigures),
            last_match(trained.output, "test: " + kFigures));
}

TEST_F(TrainYaml, ResumesAKilledRunToTheSameBits) {
  make_data();
  ASSERT_EQ(train("runner.model_save_path=whole").exit_code, 0);
  for (const std::string& moment : kMoments)
    expect_exact_resume("whole", moment, "runner.thread_num=1", "runner.thread_num=1");
}

TEST_F(TrainYaml, ResumesADeterministicRunToTheSameBitsWithOtherThreads) {
  make_data();
  const std::string one = "runner.deterministic=True runner.thread_num=1",
                    two = "runner.deterministic=True runner.thread_num=2";
  ASSERT_EQ(train(one + " runner.model_save_path=whole").exit_code, 0);
  expect_exact_resume("whole", kMoments[0], two, one);
  expect_exact_resume("whole", kMoments[1], one, two);
  expect_exact_resume("whole", kMoments[3], two, two);
}

TEST_F(TrainYaml, ResumesToTheSameBitsWithSeveralReadersAndOddCheckpoints) {
  make_data();
  // After 31 of 60 batches it is the second reader's turn.
  const std::string settings = "runner.reader_threads=2 runner.save_interval=31";
  ASSERT_EQ(train(settings + " runner.model_save_path=whole").exit_code, 0);
  expect_exact_resume("whole", "epoch: 0, batch_id: 31,", settings, settings);
  expect_exact_resume("whole", "epoch: 1, batch_id: 31,", settings, settings);
}

TEST_F(TrainYaml, AveragesOfAResumedEpochAreOfItsOwnSteps) {
  make_data();
  train("runner.epochs=1", "batch_id: 30,");
  const Outcome resumed = train("runner.epochs=1 runner.resume=True");
  ASSERT_EQ(resumed.exit_code, 0) << resumed.errors;
  for (const std::string& samples : all_matches(resumed.output, "avg_samples: ([0-9.]+)"))
    EXPECT_EQ(samples, "50.00000") << resumed.output;
}

TEST_F(TrainYaml, ResumesTheLatestRunNotALaterEpochOfAnEarlierOne) {
  make_data();
  ASSERT_EQ(train("runner.epochs=3 runner.save_interval=0").exit_code, 0);
  const std::string anew = "runner.epochs=3 runner.save_interval=0 runner.seed=7";
  EXPECT_EQ(train(anew, "epoch: 1, batch_id: 3,").exit_code, -1);
  const Outcome resumed = train(anew + " runner.resume=True");
  EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
  EXPECT_EQ(last_match(resumed.output, "resume from (.*)"),
            "model_output/0: epoch 1, 0 batches of it are done");
}

TEST_F(TrainYaml, AFinishedRunHasNothingToResume) {
  make_data();
  ASSERT_EQ(train("runner.epochs=1").exit_code, 0);
  const Outcome again = train("runner.epochs=1 runner.resume=True");
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_NE(again.output.find("all 1 epochs are trained, nothing is left to do"),
            std::string::npos);
}

TEST_F(TrainYaml, EveryInstanceIsTrainedOnceWithThreadsAlsoOverAKill) {
  make_data();
  // One reader and more threads than processors: they come back in any order.
  for (const std::string threads :
       {"runner.thread_num=2", "runner.thread_num=4 runner.reader_threads=1"}) {
    const std::string settings =
        threads + " runner.audit=True runner.epochs=1 runner.save_interval=3";
    const auto audited = [](const Outcome& outcome) {
      EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
      return std::stoi(last_match(outcome.output, "audit: ([0-9]+) instances of"));
    };
    fs::remove_all(folder_ / "model_output");
    EXPECT_EQ(audited(train(settings)), kRows);
    for (const std::string moment : {"batch_id: 11,", "batch_id: 31,"}) {
      fs::remove_all(folder_ / "model_output");
      EXPECT_EQ(train(settings, moment).exit_code, -1);
      const Outcome resumed = train(settings + " runner.resume=True");
      const int done = std::stoi(last_match(resumed.output, "0, ([0-9]+) batches of it are done"));
      EXPECT_EQ(done * kBatchSize + audited(resumed), kRows) << resumed.output;
    }
  }
}

TEST_F(TrainYaml, DeterministicRunsGiveTheSameBitsForAnyNumberOfThreads) {
  make_data();
  const std::string settings = "runner.deterministic=True runner.model_save_path=";
  ASSERT_EQ(train(settings + "one").exit_code, 0);
  ASSERT_EQ(train(settings + "three runner.thread_num=3").exit_code, 0);
  EXPECT_EQ(difference("one/0", "three/0"), "");
  EXPECT_EQ(difference("one/1", "three/1"), "");
}

/// Kills what writes a longer file, in the middle of it.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before_); }

 private:
  rlimit before_{};
};

TEST_F(TrainYaml, DataWhoseGenerationWasKilledAreMadeAgain) {
  const std::string settings =
      "'runner.generate=criteo(rows=3000,vocab=50,files=2)' runner.epochs=1 runner.audit=True";
  {
    const FileSizeLimit limit(100000);  // the test rows take less, a part to train with takes more
    const Outcome killed = train(settings);
    EXPECT_EQ(killed.exit_code, -1) << killed.output << killed.errors;
  }
  EXPECT_FALSE(fs::exists(folder_ / "train"));
  const Outcome again = train(settings);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(last_match(again.output, "audit: ([0-9]+) instances of"), std::to_string(kRows));
  EXPECT_FALSE(fs::exists(folder_ / "train.part"));
}

TEST_F(TrainYaml, EveryModelOfTheZooPassesItsCheckAndTrainsNothing) {
  const fs::path zoo = ARGOSY_SOURCE_DIR "/models";
  if (!fs::exists(zoo)) GTEST_SKIP() << zoo << " is missing";
  fs::copy(zoo, folder_ / "models", fs::copy_options::recursive);
  for (const auto& model : fs::recursive_directory_iterator(folder_ / "models")) {
    if (!fs::exists(model.path() / "config.yaml")) continue;
    const std::string path = model.path().string();
    fs::remove_all(model.path() / "data");
    const Outcome checked = run("argosy train --check -m " + path, folder_);
    EXPECT_EQ(checked.exit_code, 0) << path << ": " << checked.errors;
    EXPECT_NE(checked.output.find("the model is built"), std::string::npos) << checked.output;
    EXPECT_EQ(checked.output.find("batch_id"), std::string::npos) << checked.output;
    for (const auto& entry : fs::directory_iterator(model.path()))
      EXPECT_FALSE(entry.path().filename().string().starts_with("output_model")) << entry.path();
  }
}

TEST_F(TrainYaml, ThePythonPipeGivesTheFiguresOfTheBuiltInReader) {
  const fs::path dnn = ARGOSY_SOURCE_DIR "/models/rank/dnn";
  if (!fs::exists(dnn)) GTEST_SKIP() << dnn << " is missing";
  fs::copy(dnn, folder_ / "dnn", fs::copy_options::recursive);
  fs::remove_all(folder_ / "dnn/data");
  const std::string command =
      "argosy train -m dnn -o runner.epochs=1 "
      "'runner.generate=criteo(rows=2000,vocab=50,files=2)' ";
  const Outcome piped = run(command + "runner.model_save_path=piped", folder_);
  ASSERT_EQ(piped.exit_code, 0) << piped.errors;
  EXPECT_NE(piped.output.find("runner.pipe_command"), std::string::npos) << piped.output;
  const Outcome direct = run(
      command + "runner.model_save_path=direct runner.pipe_command= runner.reader=criteo", folder_);
  ASSERT_EQ(direct.exit_code, 0) << direct.errors;
  EXPECT_EQ(all_matches(piped.output, kFigures), all_matches(direct.output, kFigures));
  EXPECT_GE(all_matches(piped.output, kFigures).size(), 2U) << piped.output;
  EXPECT_EQ(difference("dnn/piped/0", "dnn/direct/0"), "");
}

TEST_F(TrainYaml, CtrLocalTrainsThroughThePythonReader) {
  if (!fs::exists(ARGOSY_SOURCE_DIR "/models/rank/dnn/benchmark_reader.py"))
    GTEST_SKIP() << "models/rank/dnn is missing";
  make_data();
  const Outcome outcome =
      run("ctr_local --epochs 1 --data '" + (folder_ / "train").string() + "'", ARGOSY_SOURCE_DIR);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output << outcome.errors;
  EXPECT_NE(outcome.output.find("epoch 0  auc 0."), std::string::npos) << outcome.output;
}

TEST_F(TrainYaml, RefusesSettingsByTheirNameAndPlace) {
  make_data();
  const auto refuse_file = [&](const std::string& line, const std::vector<std::string>& words) {
    std::string text = kConfig;
    text.insert(text.find("  use_auc"), "  " + line + "\n");  // as line 9
    write("bad.yaml", text);
    expect_refused(run("argosy train -m bad.yaml", folder_), words);
  };
  refuse_file("epoch: 3", {"bad.yaml:9", "unknown key runner.epoch", "did you mean runner.epochs"});
  refuse_file("thread_num: many", {"bad.yaml:9", "runner.thread_num", "a whole number", "'many'"});
  refuse_file("shuffle: [1, 2]", {"bad.yaml:9", "runner.shuffle", "expected"});
  refuse_file("use_gpu: True", {"bad.yaml:9", "runner.use_gpu", "write False"});
  refuse_file("pipe_command: [", {"bad.yaml:", "not YAML"});
  expect_training_refused("runner.epoch=3", {"-o runner.epoch=3", "did you mean runner.epochs"});
  expect_training_refused("runner.epochs", {"-o runner.epochs", "expected KEY=VALUE"});
  expect_training_refused("hyper_parameters.fc_size=3", {"unknown key hyper_parameters.fc_size"});
  expect_refused(run("argosy train -m absent.yaml", folder_), {"absent.yaml", "cannot be opened"});
  expect_refused(run("argosy train -m " + std::string(5000, 'x'), folder_), {"too long"});
  EXPECT_FALSE(fs::exists(folder_ / "model_output"));
}

TEST_F(TrainYaml, RefusesDataThatAreNotThere) {
  make_data();
  fs::create_directories(folder_ / "empty");
  fs::create_directories(folder_ / "nested/folder");
  expect_training_refused("runner.train_data_dir=absent", {"absent", "no such file or folder"});
  expect_training_refused("runner.train_data_dir=empty", {"empty", "holds no file"});
  expect_training_refused("runner.train_data_dir=nested", {"nested", "holds no file"});
  expect_training_refused("'runner.train_data_dir=nested/f*'", {"nested/folder", "no file"});
  expect_training_refused("'runner.train_data_dir=none*'", {"none*", "no file matches"});
  expect_training_refused("runner.train_data_dir=" + std::string(5000, 'x'), {"no such file"});
  expect_training_refused("runner.train_data_dir=new 'runner.generate=criteo(row=9)'",
                          {"'row'", "did you mean rows"});
  expect_training_refused("runner.model_save_path=config.yaml", {"config.yaml"});
  EXPECT_FALSE(fs::exists(folder_ / "new"));
}

TEST_F(TrainYaml, RefusesAFileThatMayNotBeRead) {
  make_data();
  fs::permissions(folder_ / "train/part-1", fs::perms::none);
  if (::access((folder_ / "train/part-1").c_str(), R_OK) == 0)
    GTEST_SKIP() << "this user may read every file";
  expect_training_refused("runner.epochs=1", {"train/part-1", "Permission denied"});
}

/// Fifty rows that are right, then one that is not.
TEST_F(TrainYaml, RefusesBadLinesByFileAndLine) {
  make_data();
  const std::string rows = content(folder_ / "train/part-0");
  fs::remove_all(folder_ / "train");
  size_t at = 0;
  for (int line = 0; line < 50; ++line) at = rows.find('\n', at) + 1;
  const std::string good = rows.substr(0, at), row = rows.substr(at, rows.find('\n', at) - at);
  const std::string categories = [&] {
    size_t tab = 0;
    for (int column = 0; column < 2; ++column) tab = row.find('\t', tab) + 1;
    return row.substr(tab - 1);  // with the tab before the third column
  }();
  const auto refuse_row = [&](const std::string& bad, const std::vector<std::string>& words) {
    make_data(good + bad + "\n");
    std::vector<std::string> all = {"1 of 51 lines are bad", "train/part-0:51: "};
    all.insert(all.end(), words.begin(), words.end());
    expect_training_refused("runner.epochs=1", all);
  };
  std::string endless;
  endless.resize(10000000, 'x');
  refuse_row(endless, {"a line of 10000000 bytes", "the limit is"});
  refuse_row("1\t" + std::string(1, '\0') + categories, {"a NUL at byte 3"});
  refuse_row(row.substr(0, row.rfind('\t')), {"expected 40 columns", "found 39"});
  refuse_row(row + "\t1", {"expected 40 columns", "found 41"});
  refuse_row("1\tabc" + categories, {"'dense_input'", "expected a finite number, found 'abc'"});
  refuse_row("1\tnan" + categories, {"'dense_input'", "expected a finite number, found 'nan'"});
  refuse_row("1\t-inf" + categories, {"'dense_input'", "expected a finite number"});
  refuse_row("1\t1e99" + categories, {"'dense_input'", "expected a finite number"});
  refuse_row("yes\t1" + categories, {"'label'", "expected a label, found 'yes'"});
  make_data("");
  expect_training_refused("runner.epochs=1", {"no instance in 1 files", "train/part-0"});
}

TEST_F(TrainYaml, RefusesATruncatedGzip) {
  make_data();
  const std::string pack = "gzip '" + (folder_ / "train/part-1").string() + "'";
  if (std::system(pack.c_str()) != 0) GTEST_SKIP() << "no gzip here";
  const Outcome whole = train("runner.epochs=1 runner.audit=True");
  EXPECT_EQ(last_match(whole.output, "audit: ([0-9]+) instances of"), std::to_string(kRows));
  fs::resize_file(folder_ / "train/part-1.gz", 20000);
  expect_training_refused("runner.epochs=1", {"train/part-1.gz", "truncated gzip at byte 20000"});
}

TEST_F(TrainYaml, RefusesWhatAFailedPipeWrote) {
  make_data();
  const auto refuse_pipe = [&](const std::string& command, const std::string& word) {
    expect_training_refused("'runner.pipe_command=" + command + "' runner.epochs=1",
                            {"train/part-0 through ", word});
  };
  refuse_pipe("exit 3", "exit status 3");
  refuse_pipe("echo no such thing >&2; false", "exit status 1, stderr: no such thing");
  refuse_pipe("no_such_program_here", "exit status 127");
  refuse_pipe("cat; kill -9 $$", "killed by signal 9");
  refuse_pipe("head -n 700; exit 4", "exit status 4");
  refuse_pipe("head -c 100000 /dev/urandom", "lines are bad");
  refuse_pipe("echo hello", ":1: expected 40 columns");
  refuse_pipe("cat >/dev/null", "no instance in 2 files");
}

TEST_F(TrainYaml, AFailureEndsAllThreadsAlsoWhenACheckpointIsDue) {
  make_data();
  for (int again = 0; again < 5; ++again)
    expect_training_refused(
        "'runner.pipe_command=head -n 700; exit 4' runner.thread_num=4 runner.save_interval=1",
        {"train/part-", "exit status 4"});
}

TEST_F(TrainYaml, RefusesDamagedSavesToInferAndToResume) {
  make_data();
  expect_refused(infer("runner.epochs=1"), {"model_output/0/persistables.argosy", "No such file"});
  const std::string settings = "runner.epochs=1 runner.save_interval=0";
  ASSERT_EQ(train(settings).exit_code, 0);
  const std::string saved = "model_output/0/persistables.argosy",
                    table = "model_output/0/embedding.1.rows";
  const auto refuse_both = [&](const std::vector<std::string>& words) {
    expect_refused(infer("runner.epochs=1"), words);
    expect_refused(train("runner.epochs=2 runner.resume=True"), words);
  };
  for (const std::string& path : {saved, table}) {
    const std::string whole = content(folder_ / path);
    write(path, whole.substr(0, whole.size() / 2));
    refuse_both({path});
    std::string changed = whole;
    changed[whole.size() / 2] ^= 1;
    write(path, changed);
    refuse_both({path});
    write(path, "");
    refuse_both({path});
    write(path, whole);
  }
  expect_refused(infer("runner.epochs=1 hyper_parameters.sparse_feature_dim=5"), {saved, "needs"});
  fs::remove(folder_ / table);
  refuse_both({table, "No such file"});
}

}  // namespace
