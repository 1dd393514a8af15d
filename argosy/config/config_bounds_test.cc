#include <gtest/gtest.h>

#include "argosy/base/test_support.h"
#include "argosy/config/config.h"
#include "argosy/tensor/finite.h"

namespace argosy {
namespace {

Config parse(const std::string& yaml) { return parse_config(yaml, "c.yaml"); }

/// The message of a configuration that must not be taken, without the path in front of the line.
std::string refusal(const std::string& yaml) {
  const std::string text = message_of<ConfigError>([&] { parse(yaml); });
  const std::string prefix = "c.yaml:";
  return text.starts_with(prefix) ? text.substr(prefix.size()) : text;
}

std::string runner_refusal(const std::string& line) { return refusal("runner:\n  " + line + "\n"); }

TEST(ConfigBounds, ChoicesAreAnsweredWithTheNearest) {
  EXPECT_TRUE(runner_refusal("sync_mode: asinc").ends_with("got 'asinc', did you mean async?"));
  EXPECT_EQ(runner_refusal("check_nan: wran"),
            "2: runner.check_nan: check_nan is 'wran', expected fail, warn or off, did you mean "
            "warn?");
  EXPECT_EQ(parse("runner: {check_nan: warn}").runner.check_nan, "warn");
  EXPECT_EQ(parse("runner: {}").runner.check_nan, "fail");
  EXPECT_EQ(parse_check_nan(parse("runner: {check_nan: False}").runner.check_nan), CheckNan::off);
  EXPECT_EQ(parse_check_nan(parse("runner: {check_nan: yes}").runner.check_nan), CheckNan::fail);
}

TEST(ConfigBounds, MemoryOfTablesIsBytesAndTheirStoreOneThatThereIs) {
  EXPECT_EQ(parse("runner: {memory_limit: 2G}").runner.memory_limit, "2G");
  EXPECT_EQ(
      runner_refusal("memory_limit: 2 GB"),
      "2: runner.memory_limit: a limit of memory is '2 GB', expected bytes such as 2G, 512M or "
      "65536");
  const Config config = parse("tables:\n  embedding: {store: 'log(memory=1M)'}\n");
  EXPECT_EQ(config.tables.at("embedding").store, "log(memory=1M)");
  EXPECT_EQ(refusal("tables:\n  e:\n    store: memroy\n"),
            "3: tables.e.store: 'memroy': there is no such store, did you mean memory?");
}

/// Before it is read: the bound holds for a file, a value and an override alike.
TEST(ConfigBounds, LargeAndDeepFilesAreRefusedAtOnce) {
  const std::string large(50 << 20, 'x');
  const std::string bound = ": has more than 1048576 bytes, expected a configuration";
  const auto message = [](const std::string& yaml, std::vector<std::string> overrides = {}) {
    return message_of<ConfigError>([&] { parse_config(yaml, "c.yaml", overrides); });
  };
  EXPECT_EQ(message("runner: {model_save_path: " + large + "}\n"), "c.yaml" + bound);
  EXPECT_EQ(message("runner: {}\n", {"runner.model_save_path=" + large}),
            "-o runner.model_save_path" + bound);
  const TestFolder folder;
  const std::string path = folder.write("large.yaml", "runner: {model_save_path: " + large + "}\n");
  EXPECT_EQ(message_of<ConfigError>([&] { load_config(path); }), path + bound);

  const std::string deep = std::string(1000, '[') + std::string(1000, ']');
  EXPECT_EQ(message("runner:\n  pipe_command: " + deep),
            "c.yaml:2: settings are nested more than 32 levels deep");
  std::string bomb = "a: &a [x, x]\n";
  for (int i = 0; i < 40; ++i) bomb += "b: [*a, *a]\n";
  EXPECT_EQ(message(bomb), "c.yaml:1: anchors (&x, *x) are not read, write the value out");
}

TEST(ConfigBounds, NamesThatCannotBeReadBackAreRefusedWithTheirLine) {
  const std::string rule = "': expected a name without blanks, quotes, commas, brackets and =";
  EXPECT_EQ(refusal("inputs:\n  slots: [a, 'b c']\n  label: y\n"), "2: inputs.slots: 'b c" + rule);
  EXPECT_EQ(refusal("inputs:\n  slots: [a]\n  label: y=1\n"), "3: inputs.label: 'y=1" + rule);
  EXPECT_EQ(refusal("inputs:\n  slots: [a]\n  label: y\n  dense: {name: 'd(1)', size: 2}\n"),
            "4: inputs.dense.name: 'd(1)" + rule);
}

}  // namespace
}  // namespace argosy
