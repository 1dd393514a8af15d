// The table of docs/ten-minutes.md that follows a batch through the files, against the calls of one
// batch: a worker and a server, over loopback. cmake/ten_minutes.cmake compiles the files of the
// table so that each function tells this program that it is called.
#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "argosy/base/test_support.h"
#include "argosy/data/file_dataset.h"
#include "argosy/modes/serve.h"
#include "argosy/nn/layers.h"
#include "argosy/train/trainer.h"
#include "argosy/world/env.h"

namespace {

/// Functions in the order in which threads came to them. Written to from everywhere, so it has
/// nothing that could itself be traced.
struct Calls {
  std::atomic<bool> recording = false;
  std::atomic<size_t> count = 0;
  std::array<std::atomic<void*>, size_t{1} << 20> functions = {};
};
Calls calls;

}  // namespace

extern "C" {
[[gnu::no_instrument_function]] void __cyg_profile_func_enter(void* function, void*);  // NOLINT
[[gnu::no_instrument_function]] void __cyg_profile_func_exit(void*, void*);            // NOLINT

void __cyg_profile_func_enter(void* function, void*) {  // NOLINT
  if (!calls.recording.load()) return;
  const size_t at = calls.count.fetch_add(1);
  if (at < calls.functions.size()) calls.functions[at].store(function);
}
void __cyg_profile_func_exit(void*, void*) {}  // NOLINT
}

namespace argosy {
namespace {

struct Function {
  std::string file, name;  // "argosy/modes/remote.cc", "argosy::Remote::fetch"
  bool operator==(const Function&) const = default;
};

/// "argosy::Remote::fetch" of "argosy::Remote::fetch(argosy::Remote::Flight&) const".
std::string without_arguments(std::string name) {
  const std::string unnamed = "(anonymous namespace)::";
  for (size_t at; (at = name.find(unnamed)) != std::string::npos;) name.erase(at, unnamed.size());
  return name.substr(0, name.find('('));
}

std::string line_of(std::FILE* pipe) {
  std::string line;
  for (int c; (c = std::fgetc(pipe)) != EOF && c != '\n';) line += static_cast<char>(c);
  return line;
}

/// Looks functions of this program up in its debug information.
std::map<void*, Function> look_up(const std::vector<void*>& functions) {
  Dl_info program = {};
  EXPECT_NE(::dladdr(functions.at(0), &program), 0);
  std::string command = "addr2line -C -f -e /proc/" + std::to_string(::getpid()) + "/exe";
  for (void* function : functions)
    command += fmt::format(
        " {:#x}", static_cast<char*>(function) - static_cast<const char*>(program.dli_fbase));
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  std::map<void*, Function> found;
  for (void* function : functions) {
    const std::string name = line_of(pipe), place = line_of(pipe);
    const size_t begin = place.find("argosy/");
    if (begin != std::string::npos)
      found[function] = {place.substr(begin, place.find(':') - begin), without_arguments(name)};
  }
  EXPECT_EQ(::pclose(pipe), 0) << command.substr(0, 80);
  return found;
}

std::vector<Function> traced() {
  const size_t count = calls.count;
  EXPECT_LE(count, calls.functions.size()) << "more calls than there is room for";
  std::vector<void*> order(calls.functions.begin(), calls.functions.begin() + count);
  const std::set<void*> once(order.begin(), order.end());
  const std::map<void*, Function> known = look_up({once.begin(), once.end()});
  std::vector<Function> result;
  for (void* function : order)
    if (const auto found = known.find(function); found != known.end())
      result.push_back(found->second);
  return result;
}

std::vector<Function> rows_of_page() {
  std::ifstream page(std::string(ARGOSY_SOURCE_DIR) + "/docs/ten-minutes.md");
  const std::regex row("`(argosy/[a-z_/]+\\.cc): ([A-Za-z_:]+)`");
  std::vector<Function> rows;
  for (std::string line; std::getline(page, line);)
    if (std::smatch match; std::regex_search(line, match, row))
      rows.push_back({match[1], match[2]});
  return rows;
}

/// "argosy::communicators::Sync::push" is called "Sync::push" in the page.
bool is(const Function& called, const Function& row) {
  return called.file == row.file &&
         (called.name == row.name || called.name.ends_with("::" + row.name));
}

/// Why the rows are not what was called, one after the other; "": they are.
std::string difference(const std::vector<Function>& rows, const std::vector<Function>& called) {
  auto at = called.begin();
  for (const Function& row : rows) {
    const auto matches = [&](const Function& function) { return is(function, row); };
    const auto found = std::find_if(at, called.end(), matches);
    if (found == called.end())
      return fmt::format("{}: {} was {}", row.file, row.name,
                         std::ranges::any_of(called, matches)
                             ? "called, but not behind the rows above it"
                             : "not called");
    at = found + 1;
  }
  return "";
}

ModelOutputs ctr(Builder& g) {
  const std::vector<std::string> slots = {"user", "item"};
  const Var rows = nn::embedding(g, slots, "factors", 4);
  const Var label = g.input("label", {{-1, 1}});
  const Var hidden = nn::mlp(rows, std::array<int64_t, 1>{8}, "relu", "tower");
  return {.loss = nn::logistic_loss(nn::linear(hidden, 1, "out"), label)};
}

/// One epoch of one batch, by one worker and one server, in sync mode.
void train_one_batch() {
  const TestFolder folder;
  const std::string file =
      folder.write("part-0", "1 3 1 17 1 0\n1 5 1 17 1 1\n1 3 1 19 1 1\n1 8 1 17 1 0\n");
  const auto env = real_env();
  TrainerOptions options;
  options.optimizer = {.rule = "adam", .learning_rate = "0.02"};
  options.strategy = {.mode = "sync"};
  const ps::Placement placement =
      placement_of(record(ctr, options).plan, options.strategy, 1, {.min_block = 64});
  const auto server = ps::Server::make(*env, placement, {.sync = true, .threads = 2});
  const auto listening = tcp_transport();
  Role role = {.kind = RoleKind::worker, .worker_num = 1};
  role.servers.push_back(listening->listen({"127.0.0.1", 0}, server->acceptor()));
  const auto calling = tcp_transport(worker_links(options.strategy));
  Trainer trainer(*env, ctr, options,
                  connect_servers(*env, *calling, placement, role, options.strategy));
  QueueDataset data(trainer.plan().layout, {.files = {file},
                                            .slots = {{"user", SlotKind::ids, 1},
                                                      {"item", SlotKind::ids, 1},
                                                      {"label", SlotKind::floats, 1}},
                                            .batch_size = 4});
  calls.recording = true;
  const Progress progress = trainer.fit(data, {.show = nullptr});
  calls.recording = false;
  EXPECT_EQ(progress.step, 1U);
  trainer.leave();
  server->wait();
}

TEST(TenMinutes, ThePageFollowsABatchThroughTheCallsItReallyMakes) {
  const std::vector<Function> rows = rows_of_page();
  ASSERT_GT(rows.size(), 10U) << "the table of docs/ten-minutes.md is gone";
  train_one_batch();
  const std::vector<Function> called = traced();
  EXPECT_EQ(difference(rows, called), "");

  // A row that is wrong is found: a name, a file, a place in the order.
  std::vector<Function> wrong = rows;
  wrong[3].name += "_rows";
  EXPECT_NE(difference(wrong, called), "");
  wrong = rows;
  std::swap(wrong[2].file, wrong.back().file);
  EXPECT_NE(difference(wrong, called), "");
  wrong = rows;
  std::swap(wrong.front(), wrong.back());
  EXPECT_NE(difference(wrong, called), "");
}

}  // namespace
}  // namespace argosy
