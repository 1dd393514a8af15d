// Text to columns on one core: MultiSlot text as of 26 ids, 13 floats and a label, and raw Criteo
// rows with hashing, beside a plain copy of the same bytes; and what `cat` costs as a pipe command,
// and a process that does the same. The text is generated, written to files and read back from the
// page cache.
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "argosy/base/error.h"
#include "argosy/base/rng.h"
#include "argosy/data/parse_lines.h"
#include "argosy/data/pipe.h"
#include "bench/bench.h"

namespace argosy::benches {
namespace {

constexpr size_t kIds = 26, kFloats = 13, kBatch = 512;

/// Draws one number after the other.
class Draws {
 public:
  double uniform() { return random_.uniform(next_++); }
  uint64_t zipf() {  // P(x) falls as x^-1.2
    return static_cast<uint64_t>(std::min(1e15, std::pow(1 - uniform(), -1 / 0.2)));
  }
  uint32_t bits() { return static_cast<uint32_t>(random_.bits(next_++)); }

 private:
  RandomStream random_{1};
  uint64_t next_ = 0;
};

void append(std::string& text, const char* format, auto value) {
  std::array<char, 32> buffer;
  const int size = std::snprintf(buffer.data(), buffer.size(), format, value);
  text.append(buffer.data(), static_cast<size_t>(size));
}

std::string multislot_text(size_t bytes) {
  Draws draws;
  std::string text;
  while (text.size() < bytes) {
    for (size_t i = 0; i < kIds; ++i) {
      const auto id = (draws.zipf() * 31 + i * 7919) % 1000001;
      text += "1 " + std::to_string(id) + " ";
    }
    text += std::to_string(kFloats);
    for (size_t i = 0; i < kFloats; ++i) append(text, " %.4f", draws.uniform());
    text += draws.uniform() < 0.25 ? " 1 1\n" : " 1 0\n";
  }
  return text;
}

std::string criteo_text(size_t bytes) {
  Draws draws;
  std::string text;
  while (text.size() < bytes) {
    text += draws.uniform() < 0.25 ? "1" : "0";
    for (size_t i = 0; i < kFloats; ++i) {
      text += '\t';
      if (draws.uniform() < 0.7) append(text, "%.0f", std::pow(10.0, 4 * draws.uniform()));
    }
    for (size_t i = 0; i < kIds; ++i) {
      text += '\t';
      if (draws.uniform() < 0.88) append(text, "%08x", draws.bits());
    }
    text += '\n';
  }
  return text;
}

std::vector<SlotSpec> multislot_slots() {
  std::vector<SlotSpec> slots;
  for (size_t i = 1; i <= kIds; ++i) slots.push_back({"C" + std::to_string(i)});
  slots.push_back({"dense", SlotKind::floats, kFloats});
  slots.push_back({"label", SlotKind::ids, 1});
  return slots;
}

/// A folder for this run, removed with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "argosy_bench_XXXXXX").string();
    check<IoError>(::mkdtemp(name.data()) != nullptr, name, ": cannot be created");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ + "/" + name, std::ios::binary) << text;
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

/// Seconds to parse a stream to its end, batch by batch.
double parse_seconds(std::unique_ptr<ByteStream> stream, const Parser& parser, Columns& out) {
  const double start = seconds_now();
  Lines lines(std::move(stream));
  LineTally tally(0);
  while (parse_lines(lines, parser, kBatch, out, tally)) out.clear();
  out.clear();
  tally.finish();
  return seconds_now() - start;
}

BenchResults run(const BenchFlags& flags) {
  const auto bytes = static_cast<size_t>(integer(flags, "mb")) * 1000000;
  const int64_t rounds = integer(flags, "rounds");
  const Folder folder;
  const std::string multislot = multislot_text(bytes), criteo = criteo_text(bytes);
  const std::string multislot_file = folder.write("multislot", multislot),
                    criteo_file = folder.write("criteo", criteo);
  const auto multislot_parser = make_parser("multislot", multislot_slots()),
             criteo_parser = make_parser("criteo");
  Columns multislot_out(multislot_parser->slots()), criteo_out(criteo_parser->slots());
  std::string copy(multislot.size(), ' ');
  std::vector<double> multislot_rates, criteo_rates, copy_rates, cat_ratios, process_ratios;
  for (int64_t round = 0; round < rounds; ++round) {
    const double direct =
        parse_seconds(open_file(multislot_file), *multislot_parser, multislot_out);
    multislot_rates.push_back(static_cast<double>(multislot.size()) / 1e6 / direct);
    criteo_rates.push_back(static_cast<double>(criteo.size()) / 1e6 /
                           parse_seconds(open_file(criteo_file), *criteo_parser, criteo_out));
    const double start = seconds_now();
    std::memcpy(copy.data(), multislot.data(), copy.size());
    copy_rates.push_back(static_cast<double>(copy.size()) / 1e6 / (seconds_now() - start));
    const auto through = [&](const char* command) {
      const double piped_start = seconds_now();
      parse_seconds(open_pipe(multislot_file, {.command = command}), *multislot_parser,
                    multislot_out);
      return (seconds_now() - piped_start) / direct;
    };
    cat_ratios.push_back(through("cat"));
    process_ratios.push_back(through("cat -"));
  }
  return {{"multislot_mb_per_second", median(multislot_rates)},
          {"criteo_mb_per_second", median(criteo_rates)},
          {"copy_mb_per_second", median(copy_rates)},
          {"pipe_cat_ratio", median(cat_ratios)},
          {"pipe_process_ratio", median(process_ratios)}};
}

}  // namespace

Bench parse() {
  return {.help = "text to columns on one core, from files in the page cache",
          .flags = {{"mb", "100"}, {"rounds", "5"}},
          .run = run};
}

}  // namespace argosy::benches
