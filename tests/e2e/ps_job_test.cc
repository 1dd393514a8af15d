// Jobs with servers and workers as a user runs them: the programs themselves, started by fleetrun
// or by nothing but environment variables, on generated click logs; with processes that are killed.
#include "tests/e2e/test_jobs.h"

namespace argosy::e2e {
namespace {

class PsJobModes : public PsJob, public testing::WithParamInterface<const char*> {};

TEST_P(PsJobModes, LearnsAsMuchAsOneProcess) {
  const double alone = local_auc();
  EXPECT_GT(alone, 0.7);
  const std::string mode = std::string(" runner.sync_mode=") + GetParam() + " runner.geo_step=10";
  const Outcome job = launch(2, 2, "runner.model_save_path=together" + mode);
  ASSERT_EQ(job.exit_code, 0) << job.output << job.errors << log("serverlog.0");
  EXPECT_EQ(instances(2).back(), kRows);
  EXPECT_NEAR(inferred("runner.model_save_path=together"), alone, kNear);
  for (const char* server : {"serverlog.0", "serverlog.1"}) {
    EXPECT_NE(log(server).find("Server listening on 127.0.0.1:"), std::string::npos);
    EXPECT_NE(log(server).find("worker 0 has left"), std::string::npos) << log(server);
    EXPECT_NE(log(server).find("worker 1 has left"), std::string::npos) << log(server);
    EXPECT_EQ(log(server).find("lost worker"), std::string::npos) << log(server);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PsJobModes, testing::Values("sync", "async", "half_async", "geo"),
                         [](const auto& info) { return std::string(info.param); });

TEST_F(PsJob, FilesAreSharedOrReadByAll) {
  const std::string settings = "runner.sync_mode=sync runner.epochs=1 runner.split_file_list=";
  ASSERT_EQ(launch(1, 3, settings + "True").exit_code, 0);
  EXPECT_EQ(instances(3).back(), kRows);
  EXPECT_EQ(all_matches(log("workerlog.0"), "audit: ([0-9]+ instances of [0-9]+ files)"),
            std::vector<std::string>{"8000 instances of 2 files"});
  EXPECT_EQ(all_matches(log("workerlog.2"), "audit: ([0-9]+ instances of [0-9]+ files)"),
            std::vector<std::string>{"4000 instances of 1 files"});
  ASSERT_EQ(launch(1, 2, settings + "False").exit_code, 0);
  EXPECT_EQ(instances(2).back(), 2 * kRows);
  const Outcome short_of_files = launch(1, 5, settings + "True");
  EXPECT_NE(short_of_files.exit_code, 0);
  EXPECT_NE(short_of_files.errors.find("runner.split_file_list deals out 4 files to 5 workers"),
            std::string::npos)
      << short_of_files.errors;
}

TEST_F(PsJob, ResumesWithOtherNumbersOfServersAndWorkers) {
  const double alone = local_auc();
  const std::string settings = "runner.sync_mode=sync runner.model_save_path=m ";
  ASSERT_EQ(launch(2, 2, settings + "runner.epochs=1").exit_code, 0);
  const double first = inferred("runner.model_save_path=m runner.epochs=1");
  const Outcome second = launch(3, 1, settings + "runner.epochs=2 runner.resume=True");
  ASSERT_EQ(second.exit_code, 0) << second.errors;
  EXPECT_NE(second.output.find("resume from m/0: epoch 1, 0 batches of it are done"),
            std::string::npos)
      << second.output;
  EXPECT_NE(log("serverlog.2").find("loaded 1 tables from "), std::string::npos);
  const Outcome third = launch(1, 2, settings + "runner.epochs=3 runner.resume=True");
  ASSERT_EQ(third.exit_code, 0) << third.errors;
  EXPECT_NE(third.output.find("resume from m/1"), std::string::npos) << third.output;
  EXPECT_NEAR(inferred("runner.model_save_path=m"), alone, kNear);
  EXPECT_EQ(inferred("runner.model_save_path=m runner.epochs=1"), first);
  // A process without servers resumes from the servers' save.
  const Outcome alone_again =
      run(train("runner.model_save_path=m runner.epochs=4 "
                "runner.resume=True"));
  ASSERT_EQ(alone_again.exit_code, 0) << alone_again.errors;
  EXPECT_NE(alone_again.output.find("resume from m/2"), std::string::npos) << alone_again.output;
}

TEST_F(PsJob, ADamagedSaveEndsTheJobInOneLine) {
  const std::string settings = "runner.sync_mode=sync runner.model_save_path=m ";
  ASSERT_EQ(launch(2, 1, settings + "runner.epochs=1").exit_code, 0);
  for (const auto& entry : fs::directory_iterator(folder_ / "m/0"))
    if (entry.path().string().find("0-of-2") != std::string::npos)
      fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  const Outcome job = launch(1, 2, settings + "runner.epochs=2 runner.resume=True");
  EXPECT_NE(job.exit_code, 0);
  EXPECT_NE(job.errors.find("0-of-2.rows"), std::string::npos) << job.errors;
  EXPECT_NE(job.errors.find("fleetrun: worker 0 failed"), std::string::npos) << job.errors;
}

/// Worker 1 kills itself in the middle of its data.
constexpr const char* kDies =
    "'runner.pipe_command=if [ $PADDLE_TRAINER_ID = 1 ]; then head -n 1000; sleep 0.5; "
    "kill -9 $PPID; fi; cat' ";

TEST_F(PsJob, ALauncherSaysThatAWorkerWasKilled) {
  ASSERT_EQ(run("argosy gen criteo --vocab 50 --rows 4000 --files 4 --out train").exit_code, 0);
  const Outcome job = launch(1, 2, kDies + std::string("runner.sync_mode=sync runner.epochs=1"));
  EXPECT_EQ(job.exit_code, 128 + SIGKILL);
  EXPECT_NE(job.errors.find("fleetrun: worker 1 failed: killed by signal 9"), std::string::npos)
      << job.errors;
}

/// And trains the files that it had.
TEST_F(PsJob, WithoutALauncherTheOtherWorkerGoesOnWhenOneIsKilled) {
  PlainJob job(folder_, 2);
  const std::string command =
      train(kDies + std::string("runner.sync_mode=sync runner.epochs=2 runner.model_save_path=m"));
  const auto server = job.server(command);
  const auto first = job.worker(0, command), second = job.worker(1, command);
  EXPECT_EQ(second->wait(), -1);
  EXPECT_EQ(first->wait(), 0) << first->output() << first->errors();
  for (const char* epoch : {"epoch: 0", "epoch: 1"})
    EXPECT_NE(first->output().find(epoch + std::string(", 2 files were left behind by workers that "
                                                       "are lost; those who are here train them "
                                                       "now: train/part-")),
              std::string::npos)
        << first->output();
  EXPECT_EQ(all_matches(first->output(), "audit: ([0-9]+) instances of"),
            std::vector<std::string>(2, std::to_string(kRows)));
  EXPECT_EQ(server->wait(), 0) << server->output() << server->errors();
  EXPECT_NE(server->output().find("server 0: lost worker 1: "), std::string::npos)
      << server->output();
  EXPECT_NE(server->output().find("worker 1 is taken for dead: its link has been gone for 3 s"),
            std::string::npos)
      << server->output();
  EXPECT_NE(server->output().find("worker 0 has left"), std::string::npos) << server->output();
  EXPECT_GT(inferred("runner.model_save_path=m runner.epochs=2"), 0.6);
}

TEST_F(PsJob, WorkersOfAKilledServerEndWithItsName) {
  PlainJob job(folder_, 1);
  // The data stop in the middle until the server is dead.
  const std::string command = train(
      "'runner.pipe_command=head -n 1000; until [ -e dead ]; do sleep 0.05; done; cat' "
      "runner.sync_mode=async");
  const auto server = job.server(command);
  const auto worker = job.worker(0, command);
  ASSERT_TRUE(worker->says("batch_id: 10,")) << worker->errors();
  job.close_sockets();
  server->kill();
  write("dead", "");
  const auto killed = Clock::now();
  EXPECT_EQ(worker->wait(), 1);
  EXPECT_LT(Clock::now() - killed, 40s);
  const std::string name = "server 0 at " + job.address();
  EXPECT_NE(worker->errors().find("lost " + name + ": "), std::string::npos) << worker->errors();
  EXPECT_NE(worker->errors().find("argosy: " + name + " is lost for 3 s: "), std::string::npos)
      << worker->errors();
}

TEST_F(PsJob, PipesAndTheirFiguresWorkInAJob) {
  const std::string settings =
      "runner.sync_mode=half_async runner.epochs=1 runner.thread_num=2 runner.dataset_debug=True ";
  const Outcome job = launch(2, 2, settings + "'runner.pipe_command=cat | cat'");
  ASSERT_EQ(job.exit_code, 0) << job.errors;
  EXPECT_EQ(instances(2).back(), kRows);
  for (const char* worker : {"workerlog.0", "workerlog.1"})
    EXPECT_EQ(
        all_matches(log(worker), "reading: [0-9.]+ s of [0-9.]+ s were spent (waiting)").size(), 1U)
        << log(worker);
  const Outcome bad = launch(2, 2, settings + "'runner.pipe_command=exit 3'");
  EXPECT_NE(bad.exit_code, 0);
  EXPECT_NE(bad.errors.find("exit status 3"), std::string::npos) << bad.errors;
}

TEST_F(PsJob, AWrongEnvironmentIsRefusedInOneLine) {
  const std::string servers = "127.0.0.1:7001,127.0.0.1:7002";
  const auto refused = [&](const Variables& variables, const std::string& words,
                           const std::string& settings = "runner.sync_mode=sync") {
    const Outcome outcome = run(train(settings), variables);
    EXPECT_NE(outcome.exit_code, 0) << outcome.output;
    EXPECT_NE(outcome.errors.find(words), std::string::npos) << outcome.errors;
    EXPECT_EQ(lines_in(outcome.errors), 1U) << outcome.errors;
    EXPECT_FALSE(fs::exists(folder_ / "train"));
  };
  const Variables worker = {{"PADDLE_PSERVERS_IP_PORT_LIST", servers},
                            {"PADDLE_TRAINERS_NUM", "2"},
                            {"PADDLE_TRAINER_ID", "0"}};
  const auto with = [&](const std::string& name, const std::string& value) {
    Variables changed = worker;
    changed["TRAINING_ROLE"] = "TRAINER";
    changed[name] = value;
    return changed;
  };
  refused(worker, "TRAINING_ROLE is not set, expected TRAINER or PSERVER");
  refused(with("TRAINING_ROLE", "CHIEF"), "TRAINING_ROLE is 'CHIEF', expected TRAINER or PSERVER");
  refused(with("PADDLE_TRAINER_ID", "2"), "PADDLE_TRAINER_ID is '2', expected a worker's number");
  refused(with("PADDLE_TRAINERS_NUM", "two"), "PADDLE_TRAINERS_NUM is 'two', expected");
  refused(with("PADDLE_PSERVERS_IP_PORT_LIST", "here"), "PADDLE_PSERVERS_IP_PORT_LIST: ");
  refused({{"TRAINING_ROLE", "PSERVER"}}, "PADDLE_PSERVERS_IP_PORT_LIST is not set");
  refused(with("X", ""), "runner.sync_mode is local, but the environment says that this is worker",
          "runner.sync_mode=local");
  Variables server = with("TRAINING_ROLE", "PSERVER");
  server["POD_IP"] = "127.0.0.1";
  server["PADDLE_PORT"] = "7003";
  refused(server, "is '127.0.0.1:7003', expected one of the servers");
}

TEST_F(PsJob, ProcessesOfDifferentModelsDoNotTalkToEachOther) {
  PlainJob job(folder_, 2);
  const std::string command = train("runner.sync_mode=sync runner.epochs=1 ");
  const auto server = job.server(command);
  const auto other = job.worker(1, command + "hyper_parameters.sparse_feature_dim=5");
  EXPECT_EQ(other->wait(), 1);
  EXPECT_NE(other->errors().find("server 0 at " + job.address() + " refuses: plan "),
            std::string::npos)
      << other->errors();
  const auto first = job.worker(0, command), second = job.worker(1, command);
  EXPECT_EQ(first->wait() + second->wait(), 0) << first->errors() << second->errors();
  EXPECT_EQ(server->wait(), 0) << server->output();
  EXPECT_NE(server->output().find("both must run the same model"), std::string::npos);
}

TEST_F(PsJob, WorkersOfAnotherJobAreTurnedAwayByName) {
  PlainJob job(folder_, 1);
  const std::string command = train("runner.sync_mode=sync runner.epochs=1 ");
  job.id = "night";
  const auto server = job.server(command);
  job.id = "day";
  const auto other = job.worker(0, command);
  EXPECT_EQ(other->wait(), 1);
  EXPECT_NE(other->errors().find("refuses: job 'day', this is a server of job 'night'"),
            std::string::npos)
      << other->errors();
  job.id = "night";
  const auto own = job.worker(0, command);
  EXPECT_EQ(own->wait(), 0) << own->errors();
  EXPECT_EQ(server->wait(), 0) << server->output();
}

/// Before it is pushed: nobody else sees it, nothing is saved.
TEST_F(PsJob, AGradientThatIsNotFiniteEndsTheJobByName) {
  for (const char* mode : {"sync", "geo"}) {
    PlainJob job(folder_, 1);
    const std::string command = train(std::string("runner.sync_mode=") + mode +
                                      " runner.epochs=3 hyper_parameters.optimizer.class=SGD "
                                      "hyper_parameters.optimizer.learning_rate=1e30 ");
    const auto server = job.server(command), worker = job.worker(0, command);
    EXPECT_EQ(worker->wait(), 1);
    EXPECT_NE(worker->errors().find(" is not finite: "), std::string::npos) << worker->errors();
    EXPECT_NE(worker->errors().find("step "), std::string::npos) << worker->errors();
  }
}

}  // namespace
}  // namespace argosy::e2e
