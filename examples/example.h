#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "argosy/argosy.h"

/// What the examples share: one flag, one catch.
namespace example {

struct Arguments {
  argosy::GraphMode graph = argosy::GraphMode::recorded;
  bool print_program = false;
};

/// Reads the flags that all examples have; prints the help and ends where asked to.
inline Arguments arguments(int argc, char** argv, const char* about) {
  Arguments result;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      std::printf(
          "%s\n\nusage: %s [--graph static|dynamic] [--program]\n\n"
          "  --graph    record the model once, or run it line by line (same losses)\n"
          "  --program  print the training program for `argosy graph` and end\n",
          about, argv[0]);
      std::exit(0);
    }
    if (flag == "--program") {
      result.print_program = true;
      continue;
    }
    const std::string value = flag == "--graph" && i + 1 < argc ? argv[++i] : "";
    argosy::check<argosy::ConfigError>(value == "static" || value == "dynamic",
                                       "unknown argument '", flag,
                                       "', expected --graph static, --graph dynamic or --program");
    result.graph = value == "static" ? argosy::GraphMode::recorded : argosy::GraphMode::eager;
  }
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
