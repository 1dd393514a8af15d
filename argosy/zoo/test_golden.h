#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace argosy {

/// Compares with tests/golden/NAME; ARGOSY_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& name, const std::string& actual) {
  const std::string path = std::string(ARGOSY_SOURCE_DIR) + "/tests/golden/" + name;
  if (std::getenv("ARGOSY_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  std::ifstream file(path);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str()) << "golden file " << path;
}

}  // namespace argosy
