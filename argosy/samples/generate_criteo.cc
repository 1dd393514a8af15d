#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <exception>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/base/thread.h"
#include "argosy/data/feature_hash.h"
#include "argosy/samples/criteo_model.h"
#include "argosy/samples/generate.h"
#include "argosy/samples/generate_support.h"

namespace argosy {
namespace {

constexpr size_t kIntegers = CriteoModel::kIntegers, kCategories = CriteoModel::kCategories;
constexpr size_t kFirstCategory = 1 + kIntegers;  // its column
constexpr size_t kLongestLine = 2048, kHexDigits = 8;

bool has(uint32_t bits, size_t i) { return (bits >> i & 1) != 0; }

template <class Number>
char* write_number(char* at, Number value) {
  constexpr size_t kRoom = 32;
  return std::to_chars(at, at + kRoom, value).ptr;
}

char* write_hex(char* at, uint32_t value) {
  for (size_t i = 0; i < kHexDigits; ++i) *at++ = "0123456789abcdef"[value >> (28 - 4 * i) & 15];
  return at;
}

char* write_raw(char* at, const CriteoModel::Row& row) {
  *at++ = row.click ? '1' : '0';
  for (size_t i = 0; i < kIntegers; ++i) {
    *at++ = '\t';
    if (!has(row.empty_integers, i)) at = write_number(at, row.integers[i]);
  }
  for (size_t i = 0; i < kCategories; ++i) {
    *at++ = '\t';
    if (!has(row.empty_categories, i)) at = write_hex(at, row.categories[i]);
  }
  *at++ = '\n';
  return at;
}

/// Writes rows as the criteo parser sees them.
class MultiSlotWriter {
 public:
  explicit MultiSlotWriter(uint64_t table_size) {
    hashes_.reserve(kCategories);
    for (size_t i = 0; i < kCategories; ++i) hashes_.emplace_back(kFirstCategory + i, table_size);
  }

  char* operator()(char* at, const CriteoModel::Row& row) const {
    at = write_number(at, kIntegers);
    for (size_t i = 0; i < kIntegers; ++i) {
      *at++ = ' ';
      const double x = (row.integers[i] - CriteoModel::kMin[i]) / CriteoModel::kDiff[i];
      at = write_number(at, has(row.empty_integers, i) ? 0.0F : static_cast<float>(x));
    }
    for (size_t i = 0; i < kCategories; ++i) {
      std::array<char, kHexDigits> hex;
      write_hex(hex.data(), row.categories[i]);
      const size_t size = has(row.empty_categories, i) ? 0 : kHexDigits;
      for (const char c : {' ', '1', ' '}) *at++ = c;
      at = write_number(at, hashes_[i]({hex.data(), size}));
    }
    for (const char c : {' ', '1', ' ', row.click ? '1' : '0', '\n'}) *at++ = c;
    return at;
  }

 private:
  std::vector<FeatureHash> hashes_;
};

struct Tally {
  uint64_t clicks = 0;
  ExpectedAuc bayes, additive;
};

/// Shares the files among threads, of which the caller's is one.
class CriteoJob {
 public:
  CriteoJob(Env& env, const std::string& out_dir, const CriteoOptions& options)
      : env_(env),
        out_dir_(out_dir),
        options_(options),
        model_(options.seed, options.vocab),
        multislot_(options.hash) {}

  CriteoReport run() {
    const size_t threads = std::min(options_.threads, options_.files);
    std::vector<Tally> tallies(threads);
    std::vector<std::exception_ptr> failures(threads);
    {
      std::vector<Thread> others;
      others.reserve(threads - 1);
      for (size_t i = 1; i < threads; ++i)
        others.emplace_back("generator", [&, i] { failures[i] = work(i, threads, tallies[i]); });
      failures[0] = work(0, threads, tallies[0]);
    }
    for (const std::exception_ptr& failure : failures)
      if (failure) std::rethrow_exception(failure);
    if (options_.progress) options_.progress(written_);
    for (size_t i = 1; i < threads; ++i) {
      tallies[0].clicks += tallies[i].clicks;
      tallies[0].bayes.add(tallies[i].bayes);
      tallies[0].additive.add(tallies[i].additive);
    }
    return {options_.rows, tallies[0].clicks, tallies[0].bayes.value(),
            tallies[0].additive.value()};
  }

 private:
  /// Every `threads`th file. A failure ends the work of all threads and is handed back.
  std::exception_ptr work(size_t thread, size_t threads, Tally& tally) {
    try {
      for (size_t file = thread; file < options_.files; file += threads)
        write_file(file, thread == 0, tally);
    } catch (...) {
      failed_ = true;
      return std::current_exception();
    }
    return nullptr;
  }

  void write_file(size_t number, bool reports, Tally& tally) {
    constexpr uint64_t kBlock = 10000;  // rows between looks at the other threads
    AtomicTextFile file(env_, out_dir_ + "/part-" + std::to_string(number));
    const uint64_t end = first_row(number + 1);
    for (uint64_t row = first_row(number); row < end;) {
      if (failed_) return;
      const uint64_t first = row, stop = std::min(end, row + kBlock);
      for (; row < stop; ++row) write_row(file, model_.row(row), tally);
      written_ += stop - first;
      if (reports && options_.progress) options_.progress(written_);
    }
    file.finish();
  }

  void write_row(AtomicTextFile& file, const CriteoModel::Row& row, Tally& tally) const {
    tally.clicks += row.click ? 1 : 0;
    tally.bayes.add(row.level, row.level);
    tally.additive.add(row.sum_level, row.level);
    file.append(kLongestLine, [&](char* at) {
      return options_.format == CriteoFormat::raw ? write_raw(at, row) : multislot_(at, row);
    });
  }

  /// Shares that differ by one row at most.
  uint64_t first_row(size_t file) const {
    const uint64_t each = options_.rows / options_.files, more = options_.rows % options_.files;
    return options_.first_row + file * each + std::min<uint64_t>(file, more);
  }

  Env& env_;
  const std::string& out_dir_;
  const CriteoOptions& options_;
  CriteoModel model_;
  MultiSlotWriter multislot_;
  std::atomic<uint64_t> written_ = 0;
  std::atomic<bool> failed_ = false;
};

}  // namespace

CriteoReport generate_criteo(Env& env, const std::string& out_dir, const CriteoOptions& options) {
  constexpr size_t kMostThreads = 256;
  check<ConfigError>(options.rows > 0, "rows is 0, expected at least 1");
  check<ConfigError>(options.files > 0 && options.files <= options.rows, "files is ", options.files,
                     ", expected 1 to ", options.rows, ", the number of rows");
  check<ConfigError>(options.hash > 0, "hash is 0, expected the size of the id range");
  check<ConfigError>(options.threads > 0 && options.threads <= kMostThreads, "threads is ",
                     options.threads, ", expected 1 to ", kMostThreads);
  CriteoJob job(env, out_dir, options);
  env.make_directories(out_dir);
  const std::string next = out_dir + "/part-" + std::to_string(options.files);
  check<ConfigError>(!env.file_exists(next), "out: ", next, " is there already, but files is ",
                     options.files,
                     ": remove it, or it would be taken for a part of the same data");
  return job.run();
}

}  // namespace argosy
