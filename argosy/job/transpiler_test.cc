#include "argosy/job/transpiler.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <bit>
#include <cstdio>
#include <thread>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/base/test_support.h"
#include "argosy/graph/executor.h"
#include "argosy/net/test_sockets.h"
#include "argosy/world/env.h"

namespace argosy {
namespace {

constexpr const char* kTwo = "127.0.0.1:6174,127.0.0.1:6175";
constexpr int64_t kBatch = 8, kSlots = 2, kDim = 4;

/// fit_a_line: y = x w + b.
Minimized fit_a_line(const Optimizer& optimizer) {
  Builder g;
  const Var x = g.input("x", {{-1, 13}}), y = g.input("y", {{-1, 1}});
  const Var w = g.param("fc.w", {13, 1}, "uniform(-0.1, 0.1)"), b = g.param("fc.b", {1}, "zeros");
  const Var loss =
      g.apply("mean", {g.apply("square_error", {g.apply("linear", {x, w, b}, {}), y})});
  return minimize(g, loss, optimizer);
}

/// Rows of two slots and a layer that is large enough to be cut.
Minimized rows_and_layers(const Optimizer& optimizer) {
  Builder g;
  const Var y = g.input("y", {{-1, 1}});
  const Var rows = g.variable({.name = "factors",
                               .type = {{-1, kDim}, DType::f32},
                               .kind = VarKind::rows,
                               .init = "uniform(-0.1, 0.1)"});
  const Var index = g.variable({.name = "factors.index",
                                .type = {{-1, kSlots}, DType::i32},
                                .kind = VarKind::input,
                                .from = "index(factors, user, item)"});
  const Var flat = g.apply("reshape", {g.apply("embedding", {rows, index})},
                           {{"shape", std::vector<int64_t>{-1, kSlots * kDim}}});
  const Var hidden = g.apply("linear",
                             {flat, g.param("fc.0.w", {kSlots * kDim, 16}, "uniform(-0.5, 0.5)"),
                              g.param("fc.0.b", {16}, "zeros")},
                             {{"activation", "relu"}});
  const Var score = g.apply("linear", {hidden, g.param("fc.1.w", {16, 1}, "normal(0, 0.3)"),
                                       g.param("fc.1.b", {1}, "zeros")});
  return minimize(
      g, g.apply("mean", {g.apply("square_error", {score, y})}), optimizer,
      {.tables = {{"factors", {.rule = "adagrad", .entry = "probability(0.9)"}}}, .seed = 7});
}

const Optimizer kAdam = {
    .rule = "adam", .learning_rate = "0.01", .regularizer = "l2(0.001)", .clip = "value(1)"};

template <class F>
std::string refusal(F f) {
  return message_of<ConfigError>(f);
}

TEST(Minimize, GivesARuleAndAGradientForEveryParameter) {
  const auto [optimize_ops, params_grads] = fit_a_line({.rule = "sgd", .learning_rate = "0.001"});
  EXPECT_EQ(optimize_ops.lines, (std::vector<std::string>{"sgd fc.w fc.w@GRAD lr 0.001",
                                                          "sgd fc.b fc.b@GRAD lr 0.001"}));
  ASSERT_EQ(params_grads.size(), 2U);
  EXPECT_EQ(params_grads[0].param, "fc.w");
  EXPECT_EQ(params_grads[0].grad, "fc.w@GRAD");
  EXPECT_EQ(rows_and_layers(kAdam).optimize_ops.lines[0],
            "adagrad factors factors@GRAD lr 0.01 regularizer l2(0.001) clip value(1)");
}

TEST(Minimize, RefusesARuleThatDoesNotExist) {
  EXPECT_NE(refusal([] { fit_a_line({.rule = "sgdd"}); }).find("sgdd"), std::string::npos);
}

TEST(DistributeTranspiler, TwoServersAreGolden) {
  const auto [optimize_ops, params_grads] = rows_and_layers(kAdam);
  DistributeTranspiler t({.min_block_size = 40});
  t.transpile(optimize_ops, params_grads, 1, kTwo, 2);
  std::string text = t.get_trainer_program().text();
  for (const char* endpoint : {"127.0.0.1:6174", "127.0.0.1:6175"}) {
    const PserverProgram pserver = t.get_pserver_program(endpoint);
    text += "\n" + pserver.text() + "\n" + t.get_startup_program(endpoint, pserver).text();
  }
  expect_golden("transpiler_two_servers.txt", text);
}

TEST(DistributeTranspiler, FitALineIsGolden) {
  const auto [optimize_ops, params_grads] =
      fit_a_line({.rule = "sgd", .learning_rate = "0.001", .clip = "global_norm(5)"});
  DistributeTranspiler t;
  t.transpile(optimize_ops, params_grads, kTwo, 4);
  const PserverProgram pserver = t.get_pserver_program("127.0.0.1:6175");
  expect_golden("transpiler_fit_a_line.txt",
                t.get_trainer_program().text() + "\n" + pserver.text() + "\n" +
                    t.get_startup_program("127.0.0.1:6175", pserver).text());
}

TEST(DistributeTranspiler, BothSignaturesGiveTheSame) {
  const auto [optimize_ops, params_grads] = rows_and_layers(kAdam);
  DistributeTranspiler a, b;
  a.transpile(optimize_ops, params_grads, 1, kTwo, 3, false);
  b.transpile(1, optimize_ops.program, kTwo, 3, false);
  EXPECT_EQ(a.get_trainer_program().text(), b.get_trainer_program().text());
  EXPECT_NE(a.get_trainer_program().text().find("async"), std::string::npos);
  EXPECT_EQ(a.get_trainer_program().text().find("send_barrier"), std::string::npos);
  a.transpile(optimize_ops, params_grads, kTwo, 3);
  EXPECT_EQ(a.get_trainer_program().role.index, 0);
  EXPECT_EQ(a.get_trainer_program().strategy.mode, "sync");
}

TEST(DistributeTranspiler, ConfigurationDecidesHowParametersAreCut) {
  const Plan plan = rows_and_layers(kAdam).optimize_ops.program;
  const auto blocks = [&](const TranspilerConfig& config, const std::string& name) {
    DistributeTranspiler t(config);
    t.transpile(0, plan, kTwo, 1);
    const ps::Placement& placement = t.get_trainer_program().placement;
    return std::ranges::count_if(placement.slices, [&](const ps::Slice& slice) {
      return placement.parameters[slice.parameter].name == name;
    });
  };
  EXPECT_EQ(blocks({}, "fc.0.w"), 1);
  EXPECT_EQ(blocks({.min_block_size = 64}, "fc.0.w"), 2);
  EXPECT_EQ(blocks({.slice_var_up = false, .min_block_size = 64}, "fc.0.w"), 1);
  EXPECT_EQ(placement_options({.split_method = "HashName"}).dispatch, "hash_name");
  EXPECT_EQ(refusal([] { DistributeTranspiler({.split_method = "Random"}); }),
            "split_method 'Random', expected RoundRobin or HashName");
  EXPECT_EQ(refusal([] { DistributeTranspiler({.min_block_size = 0}); }),
            "min_block_size is 0, expected at least 1 float in a block");
}

TEST(DistributeTranspiler, RefusesWhatCannotBe) {
  const auto minimized = fit_a_line({});
  const Plan& plan = minimized.optimize_ops.program;
  DistributeTranspiler t;
  EXPECT_EQ(refusal([&] { t.get_trainer_program(); }),
            "there are no programs yet: transpile comes first");
  EXPECT_EQ(refusal([&] { t.transpile(0, plan, "", 1); }),
            "pservers is '', expected endpoints such as 127.0.0.1:6174, separated by commas");
  EXPECT_EQ(refusal([&] { t.transpile(0, plan, "a:1,b:2,a:1", 1); }),
            "endpoints 'a:1,b:2,a:1': a:1 comes twice, expected each once");
  EXPECT_EQ(refusal([&] { t.transpile(0, plan, "a:1,", 1); }),
            "endpoints 'a:1,': number 2 is empty, expected HOST:PORT");
  EXPECT_EQ(refusal([&] { t.transpile(0, plan, kTwo, 0); }), "trainers is 0, expected at least 1");
  EXPECT_EQ(refusal([&] { t.transpile(2, plan, kTwo, 2); }),
            "trainer_id is 2, expected 0 to 1 for 2 trainers");
  EXPECT_EQ(refusal([&] { t.transpile(-1, plan, kTwo, 2); }),
            "trainer_id is -1, expected 0 to 1 for 2 trainers");
  t.transpile(0, plan, kTwo, 2);
  EXPECT_EQ(refusal([&] { t.get_pserver_program("127.0.0.1:6176"); }),
            "pserver endpoint '127.0.0.1:6176', expected one of 127.0.0.1:6174, 127.0.0.1:6175");
  const PserverProgram second = t.get_pserver_program("127.0.0.1:6175");
  EXPECT_EQ(refusal([&] { t.get_startup_program("127.0.0.1:6174", second); }),
            "startup program of '127.0.0.1:6174': the pserver program is that of "
            "'127.0.0.1:6175' or of another transpile");
}

TEST(DistributeTranspiler, TakesThePairsThatMinimizeGave) {
  const auto [optimize_ops, pairs] = fit_a_line({});
  const auto refused = [&, &ops = optimize_ops](std::vector<ParamGrad> params_grads) {
    return refusal([&] { DistributeTranspiler().transpile(ops, params_grads, 0, kTwo, 1); });
  };
  const ParamGrad w{"fc.w", "fc.w@GRAD"}, b{"fc.b", "fc.b@GRAD"};
  EXPECT_EQ(refused({w, b}), "nothing was thrown");
  EXPECT_EQ(refused({}), "params_grads has no 'fc.w', expected all that minimize gave");
  EXPECT_EQ(refused({w, b, {"c", "c@GRAD"}}),
            "params_grads names 'c', which the program does not train");
  EXPECT_EQ(refused({w, {"fc.b", "b@GRAD"}}),
            "params_grads: the gradient of 'fc.b' is 'b@GRAD', expected 'fc.b@GRAD'");
  EXPECT_EQ(refused({w, b, w}), "params_grads names 'fc.w' more than once");
}

/// A batch whose keys differ from step to step.
void fill(Batch& batch, uint64_t step) {
  const RandomStream random(3, step);
  batch.step = step;
  batch.size = kBatch;
  Tensor y({kBatch, 1}), index({kBatch, kSlots}, DType::i32);
  for (size_t i = 0; i < kBatch; ++i) y.as<float>()[i] = static_cast<float>(random.normal(i));
  batch.keys = {{}};
  for (size_t i = 0; i < kBatch * kSlots; ++i) {
    batch.keys[0].push_back(random.bits(1000 + i) % 1000 * 100 + i);
    index.as<int32_t>()[i] = static_cast<int32_t>(i);
  }
  batch.feeds["y"] = y;
  batch.feeds["factors.index"] = index;
}

void train(const Plan& plan, Communicator& communicator, int steps) {
  Executor executor(plan.worker);
  const auto lane = communicator.make_lane();
  Batch batch;
  for (int step = 1; step <= steps; ++step) {
    fill(batch, static_cast<uint64_t>(step));
    lane->fetch(batch);
    executor.run(batch.feeds, [&](VarId id, const Tensor& value) {
      for (const Edge& edge : plan.edges)
        if (edge.value == id) lane->deliver(batch, edge, value);
    });
    lane->commit(batch);
  }
  communicator.drain();
}

/// The bits of everything in a store.
std::vector<uint32_t> bits(TableStore& store) {
  std::vector<uint32_t> all;
  const auto add = [&](const Tensor& tensor) {
    if (tensor.dtype() != DType::f32) return;
    for (const float value : tensor.as<float>()) all.push_back(std::bit_cast<uint32_t>(value));
  };
  for (const NamedTensor& tensor : store.persistables()) add(tensor.value);
  add(store.rows("factors").rows);
  return all;
}

/// A pserver program on a thread, on a free port.
class RunningPserver {
 public:
  RunningPserver() : socket_(RawSocket::bound()) { EXPECT_EQ(::listen(socket_.fd(), 8), 0); }
  ~RunningPserver() { std::fclose(out_); }
  RunningPserver(const RunningPserver&) = delete;
  RunningPserver& operator=(const RunningPserver&) = delete;
  std::string endpoint() const { return "127.0.0.1:" + std::to_string(port_); }
  void start(Env& env, PserverProgram program) {
    program.role.listen_fd = socket_.release();
    thread_ = std::jthread([this, &env, program] { run(env, program, {.out = out_}); });
  }
  /// Once it has ended.
  std::string printed() {
    thread_.join();
    std::rewind(out_);
    std::array<char, 256> line{};
    return std::fgets(line.data(), line.size(), out_) != nullptr ? line.data() : "";
  }

 private:
  RawSocket socket_;
  uint16_t port_ = socket_.port();
  std::FILE* out_ = std::tmpfile();
  std::jthread thread_;
};

TEST(PserverProgram, ServesATrainerWithTheBitsOfLocalTraining) {
  const auto env = real_env();
  const auto [optimize_ops, params_grads] = rows_and_layers(kAdam);
  const Plan& plan = optimize_ops.program;
  const auto local = make_communicator(plan, {.mode = "local"});
  constexpr int kSteps = 5;
  train(plan, *local, kSteps);

  std::array<RunningPserver, 2> servers;
  DistributeTranspiler t({.min_block_size = 40});
  t.transpile(optimize_ops, params_grads, 0, servers[0].endpoint() + "," + servers[1].endpoint(),
              1);
  for (RunningPserver& server : servers)
    server.start(*env, t.get_pserver_program(server.endpoint()));
  const TrainerProgram& trainer = t.get_trainer_program();
  {
    const auto transport = tcp_transport();
    const auto split = make_communicator(
        trainer.plan, trainer.strategy,
        connect_servers(*env, *transport, trainer.placement, trainer.role, trainer.strategy));
    train(trainer.plan, *split, kSteps);
    EXPECT_EQ(bits(split->store()), bits(local->store()));
    split->pass(Pass::leave);
  }
  for (RunningPserver& server : servers)
    EXPECT_EQ(server.printed(), "Server listening on " + server.endpoint() + "\n");
}

}  // namespace
}  // namespace argosy
