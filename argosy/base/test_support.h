#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>

/// Shared by the tests of all layers.
namespace argosy {

/// The message of the E that f throws.
template <class E, class F>
std::string message_of(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "nothing was thrown";
}

inline bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Compares with tests/golden/NAME; ARGOSY_UPDATE_GOLDEN=1 writes it instead.
inline void expect_golden(const std::string& name, const std::string& actual) {
  const std::string path = std::string(ARGOSY_SOURCE_DIR) + "/tests/golden/" + name;
  if (std::getenv("ARGOSY_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << actual;
  std::ifstream file(path);
  std::ostringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(actual, expected.str()) << "golden file " << path;
}

/// Seeds 1 to `last`, or what ARGOSY_SEEDS says instead: 2000 for 1 to 2000, 17-17 for that one.
struct SeedRange {
  uint64_t first = 1, last = 0;
};
inline SeedRange seeds_to(uint64_t last) {
  const char* const wanted = std::getenv("ARGOSY_SEEDS");
  if (wanted == nullptr) return {1, last};
  const std::string text = wanted;
  const size_t dash = text.find('-');
  if (dash == std::string::npos) return {1, std::stoull(text)};
  return {std::stoull(text), std::stoull(text.substr(dash + 1))};
}

/// A folder for the files of one test, removed with it.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "argosy_test_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for a test");
    path_ = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string write(const std::string& name, std::string_view content) const {
    std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::string path_;
};

}  // namespace argosy
