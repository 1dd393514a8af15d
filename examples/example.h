#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "argosy/argosy.h"

/// What the examples share: one flag, one catch.
namespace example {

/// Reads [--graph static|dynamic]; prints the help and ends where asked to.
inline argosy::GraphMode graph_mode(int argc, char** argv, const char* about) {
  auto mode = argosy::GraphMode::recorded;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--help" || flag == "-h") {
      std::printf("%s\n\nusage: %s [--graph static|dynamic]\n", about, argv[0]);
      std::exit(0);
    }
    const std::string value = flag == "--graph" && i + 1 < argc ? argv[++i] : "";
    argosy::check<argosy::ConfigError>(value == "static" || value == "dynamic",
                                       "unknown argument '", flag,
                                       "', expected --graph static or --graph dynamic");
    mode = value == "static" ? argosy::GraphMode::recorded : argosy::GraphMode::eager;
  }
  return mode;
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
