#pragma once

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "argosy/argosy.h"

/// Shared by the examples: flags, one catch.
namespace example {

/// Flags of a program: `--name VALUE`, or `--name` alone for a bool. Values without a flag keep
/// their defaults.
class Flags {
 public:
  /// Destination of a value. Numbers are whole and at least 0.
  using Value = std::variant<bool*, int*, uint64_t*, std::string*>;

  explicit Flags(std::string about) : about_(std::move(about)) {}
  Flags& add(std::string name, Value value, std::string help) {
    flags_.push_back({std::move(name), value, std::move(help)});
    return *this;
  }
  /// Throws ConfigError for what is wrong; prints the help and ends where asked to.
  void parse(int argc, char** argv) const {
    for (int i = 1; i < argc; ++i) {
      const std::string name = argv[i];
      if (name == "--help" || name == "-h") end_with_help(argv[0]);
      const Flag& flag = find(name);
      if (bool* const* on = std::get_if<bool*>(&flag.value)) {
        **on = true;
        continue;
      }
      argosy::check<argosy::ConfigError>(i + 1 < argc, name, " has no value, expected ", name, " ",
                                         placeholder(flag));
      set(flag, argv[++i]);
    }
  }

 private:
  struct Flag {
    std::string name;
    Value value;
    std::string help;
  };

  const Flag& find(const std::string& name) const {
    std::string names;
    for (const Flag& flag : flags_) {
      if (flag.name == name) return flag;
      names += flag.name + ", ";
    }
    argosy::fail<argosy::ConfigError>("unknown argument '", name, "', expected ", names,
                                      "or --help");
  }
  static std::string placeholder(const Flag& flag) {
    if (std::holds_alternative<bool*>(flag.value)) return "";
    return std::holds_alternative<std::string*>(flag.value) ? "VALUE" : "N";
  }
  static void set(const Flag& flag, const std::string& text) {
    if (std::string* const* value = std::get_if<std::string*>(&flag.value)) {
      **value = text;
    } else if (int* const* value = std::get_if<int*>(&flag.value)) {
      **value = number<int>(flag.name, text);
    } else {
      *std::get<uint64_t*>(flag.value) = number<uint64_t>(flag.name, text);
    }
  }
  template <class T>
  static T number(const std::string& name, const std::string& text) {
    T result = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, result);
    argosy::check<argosy::ConfigError>(error == std::errc() && rest == end && result >= T{0}, name,
                                       " is '", text, "', expected a whole number");
    return result;
  }
  [[noreturn]] void end_with_help(const char* program) const {
    std::printf("%s\n\nusage: %s [flags]\n\n", about_.c_str(), program);
    for (const Flag& flag : flags_)
      std::printf("  %-16s %s\n", (flag.name + " " + placeholder(flag)).c_str(), flag.help.c_str());
    std::exit(0);
  }

  std::string about_;
  std::vector<Flag> flags_;
};

struct Arguments {
  argosy::GraphMode graph = argosy::GraphMode::recorded;
  bool print_program = false;
};

/// The flags of examples that show both kinds of graphs.
inline Arguments arguments(int argc, char** argv, const char* about) {
  Arguments result;
  std::string graph = "static";
  Flags(about)
      .add("--graph", &graph,
           "static: record the model once; dynamic: run it line by line (same losses)")
      .add("--program", &result.print_program,
           "print the training program for `argosy graph` and end")
      .parse(argc, argv);
  argosy::check<argosy::ConfigError>(graph == "static" || graph == "dynamic", "--graph is '", graph,
                                     "', expected static or dynamic");
  if (graph == "dynamic") result.graph = argosy::GraphMode::eager;
  return result;
}

/// main() of an example: errors become one line and exit code 2.
template <class Body>
int run(Body body) {
  try {
    return body();
  } catch (const argosy::Error& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 2;
  }
}

}  // namespace example
