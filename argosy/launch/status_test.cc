#include "argosy/launch/status.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "argosy/base/error.h"
#include "argosy/base/test_support.h"
#include "argosy/launch/status_view.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;

ProcessRecord reported(const std::string& line, double heard = 0.2) {
  const auto status = parse_status("status " + line);
  if (!status) throw std::runtime_error("no status: " + line);
  ProcessRecord process{.name = status->role + " " + std::to_string(status->index),
                        .pid = 100 + status->index + (status->role == "worker" ? 50 : 0),
                        .up = 31.2};
  process.report = ProcessRecord::Report{*status, heard};
  return process;
}

const std::string kNoted =
    "role=worker index=2 doing=reading since=12.0 epoch=1 step=9 note=part-0%20gives%20nothing";

ProcessRecord ended(const std::string& name, const std::string& how) {
  ProcessRecord process{.name = name, .pid = 99, .up = 12};
  process.ended = ProcessRecord::End{how, 4};
  return process;
}

StatusFile file_of(std::vector<ProcessRecord> processes) {
  return {.host = "host-a",
          .pid = 1234,
          .started = 1000,
          .written = 1031.2,
          .processes = std::move(processes)};
}

std::string only_chain(std::vector<ProcessRecord> processes) {
  const auto chains = wait_chains({file_of(std::move(processes))});
  return chains.size() == 1 ? chains[0] : std::to_string(chains.size()) + " chains";
}

const std::string kFetching = " doing=fetching since=4.2 step=410 ";
const std::string kServing = " doing=serving since=31.2 step=410 ";

/// Worker 2 holds up the others' step on server 1.
std::vector<ProcessRecord> held_up(const ProcessRecord& second) {
  return {reported("role=server index=0" + kServing + "queue=0 rows=1048576"),
          reported("role=server index=1" + kServing +
                   "queue=2 rows=90210 wait=worker:2:4.2:0,3:step%20411"),
          reported("role=worker index=0 epoch=1 rate=0.0 queue=1" + kFetching +
                   "wait=server:1:3.9::exchange%20912%3A%20rows%20of%20emb"),
          second,
          reported("role=worker index=3 epoch=1 rate=0.0 queue=2 staleness=1.50" + kFetching +
                   "wait=server:0:0.1::exchange%20913 "
                   "wait=server:1:4.2::exchange%20912%3A%20rows%20of%20emb")};
}

TEST(Status, SaysThatAProcessIsStopped) {
  ProcessRecord stopped = reported(kNoted, 12);
  stopped.stopped = true;
  EXPECT_NE(
      only_chain(held_up(stopped)).find("; worker 2 is stopped: kill -CONT 152 lets it go on"),
      std::string::npos)
      << only_chain(held_up(stopped));
  const StatusFile file = file_of({stopped});
  const StatusFile read = parse_status_file(format_status_file(file), "path");
  EXPECT_TRUE(read.processes[0].stopped);
  EXPECT_NE(status_text({read}, 1031.2).find("is stopped"), std::string::npos);
  EXPECT_NE(status_json({read}, 1031.2).find("\"stopped\": true"), std::string::npos);
}

TEST(Status, SaysWhatHoldsUpAWorkerFromOutside) {
  EXPECT_NE(only_chain(held_up(reported(kNoted)))
                .find("; worker 2 reads data for 12.0 s (part-0 gives nothing)"),
            std::string::npos)
      << only_chain(held_up(reported(kNoted)));
  const std::string text = status_text({file_of({reported(kNoted)})}, 1031.2);
  EXPECT_NE(text.find("\nworker 2 reads data for 12 s: part-0 gives nothing\n"), std::string::npos)
      << text;
  const std::string chained = status_text({file_of(held_up(reported(kNoted)))}, 1031.2);
  EXPECT_EQ(chained.find("12 s: part-0 gives nothing"), std::string::npos) << chained;
  EXPECT_NE(
      status_json({file_of({reported(kNoted)})}, 1031.2).find("\"note\": \"part-0 gives nothing\""),
      std::string::npos);
}

TEST(WaitChains, LeadFromAWorkerThroughServersToTheOneThatReads) {
  EXPECT_EQ(only_chain(held_up(reported("role=worker index=2 doing=reading since=4.3 step=410"))),
            "worker 3 waits 4.2 s for server 1 (exchange 912: rows of emb); server 1 waits 4.2 s "
            "for worker 2 (step 411); worker 2 reads data for 4.3 s; likewise worker 0");
}

TEST(WaitChains, EndWithWhoIsSilentOrDeadOrNotKnown) {
  const auto end = [](const ProcessRecord& second) {
    const std::string chain = only_chain(held_up(second));
    return chain.substr(chain.find("(step 411); ") + 12);
  };
  EXPECT_EQ(
      end(reported("role=worker index=2" + kFetching + "wait=server:0:9.0::exchange%201", 12)),
      "worker 2 has not reported for 12.0 s; likewise worker 0");
  EXPECT_EQ(end(ended("worker 2", "killed by signal 9 (Killed)")),
            "worker 2 has ended: killed by signal 9 (Killed); likewise worker 0");
  EXPECT_EQ(end({.name = "worker 2", .pid = 9, .up = 31.2}),
            "worker 2 has not reported since it was started 31.2 s ago; likewise worker 0");
  EXPECT_EQ(end({.name = "worker 7"}), "worker 2 is in no status file here; likewise worker 0");
}

TEST(WaitChains, LeadFromRanksToTheOneThatReads) {
  EXPECT_EQ(only_chain({reported("role=worker index=0 doing=sending since=6.0 step=4 "
                                 "wait=worker:1-2:6.0::to%20end%20step%205"),
                        reported("role=worker index=1 doing=reading since=6.1 step=4"),
                        reported("role=worker index=2 doing=fetching since=5.9 step=4 "
                                 "wait=worker:0-1:5.9::to%20end%20step%205")}),
            "worker 0 waits 6.0 s for workers 1-2 (to end step 5); worker 1 reads data for 6.1 s; "
            "likewise worker 2");
}

TEST(WaitChains, SayThatTheyAreCircles) {
  const auto chains = wait_chains(
      {file_of({reported("role=server index=0" + kServing + "wait=worker:1:5.0:0:join"),
                reported("role=server index=1" + kServing + "wait=worker:0:4.0:1:step%202"),
                reported("role=worker index=0 doing=meeting since=5.0 wait=server:0:5.0::join"),
                reported("role=worker index=1" + kFetching + "wait=server:1:4.0::exchange%209")})});
  ASSERT_EQ(chains.size(), 2U);  // one from each worker
  EXPECT_EQ(chains[0],
            "worker 0 waits 5.0 s for server 0 (join); server 0 waits 5.0 s for worker 1 (join); "
            "worker 1 waits 4.0 s for server 1 (exchange 9); server 1 waits 4.0 s for worker 0 "
            "(step 2); that is a circle: worker 0 waits for itself");
}

TEST(WaitChains, PreferOfSeveralTheOneThatExplainsMost) {
  const std::vector<ProcessRecord> processes = {
      reported("role=server index=0" + kServing + "wait=worker:1-2,4:6.0:0:gather%20x"),
      reported("role=worker index=0 doing=meeting since=6.0 wait=server:0:6.0::gather%20x"),
      reported("role=worker index=1" + kFetching + "wait=server:0:0.1::exchange%207"),
      reported("role=worker index=2 doing=computing since=5.0"),
      reported("role=worker index=4 doing=reading since=1.0")};
  EXPECT_EQ(only_chain(processes),
            "worker 0 waits 6.0 s for server 0 (gather x); server 0 waits 6.0 s for workers 1-2, 4 "
            "(gather x); worker 2 computes for 5.0 s");
}

TEST(WaitChains, AServerIsNotBlamedForWhatItHoldsBackFromOthers) {
  EXPECT_EQ(
      only_chain({reported("role=server index=0" + kServing + "wait=worker:1:9.0:2:gather%20x"),
                  reported("role=worker index=0" + kFetching + "wait=server:0:4.2::exchange%207"),
                  reported("role=worker index=1 doing=reading since=0.1")}),
      "worker 0 waits 4.2 s for server 0 (exchange 7); server 0 waits for nobody");
}

TEST(WaitChains, ShortWaitsAndWaitsOfThoseWhoAreBusyAreNone) {
  EXPECT_TRUE(wait_chains({file_of({reported("role=server index=0" + kServing),
                                    reported("role=worker index=0" + kFetching +
                                             "wait=server:0:0.9::exchange%207"),
                                    reported("role=worker index=1 doing=reading since=9.0 "
                                             "wait=server:0:9.0::exchange%207")})})
                  .empty());
}

TEST(WaitChains, AServerThatMissesWorkersSaysSo) {
  EXPECT_EQ(
      only_chain({reported("role=server index=0" + kServing + "wait=worker:0-1:20.0::hello")}),
      "server 0 waits 20.0 s for workers 0-1 (hello); worker 0 is in no status file here");
}

TEST(StatusView, ShowsATableThenTheChains) {
  std::vector<ProcessRecord> processes =
      held_up(reported("role=worker index=2 epoch=1 doing=reading since=4.3 step=410 rate=812.4"));
  processes[2].starts = 2;
  processes.push_back(ended("worker 4", "exit status 3"));
  processes.push_back({.name = "worker 5", .pid = 7, .up = 4000});
  processes.push_back(
      reported("role=worker index=6 doing=reading since=4.3 step=410 rate=9.0", 75));
  expect_golden("status_text.txt", status_text({file_of(processes)}, 1031.5));
  expect_golden("status_json.txt", status_json({file_of(std::move(processes))}, 1044.0));
}

TEST(StatusView, SaysThatALauncherHasStoppedWriting) {
  StatusFile file = file_of({});
  EXPECT_TRUE(launcher_troubles({file}, file.written + 4).empty());
  EXPECT_EQ(launcher_troubles({file}, file.written + 12),
            std::vector<std::string>{"the launcher 1234 on host-a has not written for 12 s"});
  file.finished = true;
  EXPECT_TRUE(launcher_troubles({file}, file.written + 12).empty());
  EXPECT_NE(status_text({file}, file.written + 200).find("\nthe job has ended, 3 min 20 s ago\n"),
            std::string::npos);
}

TEST(StatusFile, IsReadAsItWasWritten) {
  std::vector<ProcessRecord> processes =
      held_up(reported("role=worker index=2 doing=reading since=4.3 step=410"));
  processes.push_back(ended("worker 4", "killed by signal 9 (Killed)"));
  const std::string text = format_status_file(file_of(std::move(processes)));
  EXPECT_EQ(format_status_file(parse_status_file(text, "f")), text);
}

TEST(StatusFile, ADamagedOneIsRefusedWithItsLine) {
  const std::string text =
      format_status_file(file_of({reported("role=worker index=2 doing=reading since=4.3 step=1")}));
  const auto refusal = [](const std::string& damaged) {
    return message_of<DataError>([&] { parse_status_file(damaged, "log/status.a"); });
  };
  EXPECT_EQ(refusal(""), "log/status.a:1: is '', expected 'argosy status 1'");
  EXPECT_EQ(refusal("argosy status 2\n"),
            "log/status.a:1: is 'argosy status 2', expected 'argosy status 1'");
  EXPECT_EQ(refusal("argosy status 1\n"), "log/status.a:2: expected 'launcher NAME=VALUE ...'");
  EXPECT_EQ(refusal(text.substr(0, text.find("status role"))),
            "log/status.a:4: expected the status of worker 2");
  EXPECT_EQ(refusal(text.substr(0, text.find(" pid=")) + "\n"), "log/status.a:2: has no pid");
  EXPECT_EQ(refusal("argosy status 1\nlauncher host=a pid=1 started=inf"),
            "log/status.a:2: started is 'inf', expected a number");
}

class StatusBoardTest : public testing::Test {
 protected:
  StatusFile read() { return read_status_files(folder_.path()).at(0); }
  TestFolder folder_;
  StatusBoard::Time now_ = std::chrono::steady_clock::now();
  StatusBoard board_{folder_.path(), "host-a"};
};

TEST_F(StatusBoardTest, KeepsTheLastReportAndTheEndOfEachProcess) {
  board_.started("server 0", 11, now_);
  board_.started("worker 0", 12, now_);
  board_.started("worker 1", 13, now_ + 1s);
  board_.take("status role=worker index=0 step=1", now_ + 2s);
  board_.take("status role=worker index=0 step=2", now_ + 3s);
  board_.take("worker=0 epoch=1 step=9", now_ + 4s);            // a line of progress
  board_.take("status role=worker index=7 step=3", now_ + 4s);  // nobody's
  board_.ended("worker 1", "exit status 3", now_ + 4s);
  EXPECT_EQ(board_.write_if_due(now_ + 5s), std::nullopt);
  const StatusFile file = read();
  EXPECT_EQ(file.host, "host-a");
  EXPECT_EQ(file.pid, ::getpid());
  EXPECT_FALSE(file.finished);
  ASSERT_EQ(file.processes.size(), 3U);
  EXPECT_FALSE(file.processes[0].report);
  EXPECT_EQ(file.processes[0].up, 5);
  ASSERT_TRUE(file.processes[1].report);
  EXPECT_EQ(file.processes[1].report->status.step, 2U);
  EXPECT_EQ(file.processes[1].report->seconds, 2);
  ASSERT_TRUE(file.processes[2].ended);
  EXPECT_EQ(file.processes[2].ended->how, "exit status 3");
  EXPECT_EQ(file.processes[2].ended->seconds, 1);
  EXPECT_EQ(file.processes[2].up, 3);
}

TEST_F(StatusBoardTest, AProcessThatIsStartedAgainBeginsAnew) {
  board_.started("worker 0", 12, now_);
  board_.take("status role=worker index=0 step=9", now_ + 1s);
  board_.ended("worker 0", "exit status 3", now_ + 2s);
  board_.take("status role=worker index=0 step=10", now_ + 2s);  // was still in the pipe
  board_.started("worker 0", 14, now_ + 3s);
  const StatusFile file = board_.file(now_ + 4s);
  ASSERT_EQ(file.processes.size(), 1U);
  EXPECT_EQ(file.processes[0].pid, 14);
  EXPECT_EQ(file.processes[0].starts, 2);
  EXPECT_FALSE(file.processes[0].ended || file.processes[0].report);
}

TEST_F(StatusBoardTest, WritesTwiceASecondAtMostAndAlwaysTheEnd) {
  const auto steps = [&] { return read().processes.at(0).report->status.step; };
  const auto write = [&](int step, StatusBoard::Time at) {
    board_.take("status role=worker index=0 step=" + std::to_string(step), at);
    EXPECT_EQ(board_.write_if_due(at), std::nullopt);
  };
  board_.started("worker 0", 12, now_);
  write(1, now_);
  EXPECT_EQ(steps(), 1U);
  write(2, now_ + 499ms);
  EXPECT_EQ(steps(), 1U);
  write(3, now_ + 500ms);
  EXPECT_EQ(steps(), 3U);
  board_.ended("worker 0", "exit status 0", now_ + 501ms);
  EXPECT_EQ(board_.finish(now_ + 501ms), std::nullopt);
  EXPECT_TRUE(read().finished);
  EXPECT_TRUE(read().processes[0].ended);
}

TEST_F(StatusBoardTest, SaysOnceThatItCannotWrite) {
  StatusBoard nowhere(folder_.path() + "/missing", "host-a");
  const auto trouble = nowhere.write_if_due(now_);
  ASSERT_TRUE(trouble);
  EXPECT_NE(trouble->find("cannot write " + folder_.path() + "/missing/status.host-a: "),
            std::string::npos)
      << *trouble;
  EXPECT_EQ(nowhere.write_if_due(now_ + 10s), std::nullopt);
}

/// As on a full disk.
TEST_F(StatusBoardTest, SaysThatLogsMayLoseLines) {
  std::filesystem::create_symlink("/dev/full", folder_.path() + "/.status.host-a.new");
  const auto trouble = board_.write_if_due(now_);
  ASSERT_TRUE(trouble);
  EXPECT_EQ(*trouble, "cannot write " + folder_.path() +
                          "/status.host-a: No space left on device; the logs beside it may lose "
                          "lines, and argosy status will not see this job");
}

TEST_F(StatusBoardTest, NamesTheJob) {
  StatusBoard board(folder_.path(), "host-a", "night shift");
  EXPECT_EQ(board.write_if_due(now_), std::nullopt);
  const std::vector<StatusFile> files = read_status_files(folder_.path());
  ASSERT_EQ(files.size(), 1U);
  EXPECT_EQ(files[0].job, "night shift");
  EXPECT_TRUE(status_text(files, unix_now()).starts_with("job night shift\n"));
  EXPECT_TRUE(status_json(files, unix_now()).starts_with(R"({"job": "night shift", )"));
}

TEST_F(StatusBoardTest, AllHostsOfTheJobAreReadAndNoneOfAnEarlierOne) {
  EXPECT_NE(message_of<IoError>([&] { read(); }).find(" has no status.HOST: expected "),
            std::string::npos);
  board_.started("worker 0", 12, now_);
  board_.write_if_due(now_);
  StatusFile other = file_of({{.name = "worker 1", .pid = 3}});
  other.host = "host-b";
  folder_.write("status.host-b", format_status_file(other));  // written in 1970
  EXPECT_EQ(read_status_files(folder_.path()).size(), 1U);
  other.written = unix_now() + 1;
  folder_.write("status.host-b", format_status_file(other));
  const auto files = read_status_files(folder_.path());
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files[1].processes.at(0).name, "worker 1");
}

TEST(StatusBoard, AFolderThatIsNotThereIsNamed) {
  EXPECT_EQ(
      message_of<IoError>([] { read_status_files("no/such"); }),
      "cannot read the folder no/such: No such file or directory; expected the --log_dir of a "
      "fleetrun");
}

}  // namespace
}  // namespace argosy::launch
