#include "argosy/job/cuts.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/job/saves.h"
#include "argosy/ps/server_mark.h"
#include "argosy/train/manifest.h"
#include "argosy/train/saved_cut.h"
#include "argosy/train/saved_model.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "cut-";

/// All of a text, as a number.
std::optional<uint64_t> whole_number(std::string_view text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

uint64_t rows_of(const SavedCut& cut) {
  uint64_t rows = 0;
  for (const ps::SavedTable& part : cut.parts) rows += part.sum.rows;
  return rows;
}

}  // namespace

CutInterval parse_cut_interval(const std::string& text) {
  if (text.empty()) return {};
  struct Unit {
    char name;
    std::chrono::seconds length;
  };
  static constexpr std::array<Unit, 3> kUnits{{{'s', std::chrono::seconds(1)},
                                               {'m', std::chrono::minutes(1)},
                                               {'h', std::chrono::hours(1)}}};
  constexpr uint64_t kMost = 1'000'000;
  const auto unit = std::ranges::find(kUnits, text.back(), &Unit::name);
  const bool is_time = unit != kUnits.end();
  const auto number =
      whole_number(std::string_view(text).substr(0, text.size() - (is_time ? 1 : 0)));
  check<ConfigError>(number && *number <= kMost, "'", text,
                     "' is no interval, expected seconds, minutes or hours such as 60s, 10m or "
                     "2h, or a number of steps, at most ",
                     kMost);
  if (is_time) return {.time = unit->length * static_cast<int64_t>(*number), .steps = 0};
  return {.time = {}, .steps = *number};
}

std::string cut_folder(const std::string& folder, uint64_t number) {
  return fmt::format("{}/{}{}", folder, kPrefix, number);
}

std::vector<uint64_t> cut_numbers(const std::string& folder) {
  std::vector<uint64_t> numbers;
  std::error_code error;
  auto entry = fs::directory_iterator(folder, error);
  for (; !error && entry != fs::end(entry); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    if (const auto number = whole_number(std::string_view(name).substr(kPrefix.size())))
      numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<Trained> cursors_of_cut(Env& env, const std::string& dir) {
  const std::string path = manifest_path(dir);
  const Manifest manifest = Manifest::parse(load_model(env, path).program, path);
  std::vector<Trained> furthest;
  if (manifest.cuts.empty()) return furthest;
  for (const std::string& text : manifest.marks) {
    const std::vector<Trained> trained = ps::ServerMark::parse(text).trained;
    furthest.resize(std::max(furthest.size(), trained.size()));
    for (size_t i = 0; i < trained.size(); ++i) furthest[i] = std::max(furthest[i], trained[i]);
  }
  return furthest;
}

Cuts::Cuts(Env& env, Asking asking, CutOptions options)
    : env_(env), asking_(std::move(asking)), options_(std::move(options)), last_(env.now()) {
  if (const auto numbers = cut_numbers(options_.folder); !numbers.empty())
    next_ = numbers.back() + 1;
  thread_ = Thread("cuts", [this](const std::stop_token& stop) { run(stop); });
}

bool Cuts::is_due() {
  const CutInterval& interval = options_.interval;
  return interval.steps > 0 ? steps_ >= interval.steps : env_.now() - last_ >= interval.time;
}

void Cuts::after_step(int epoch) {
  Cut cut{.number = 0, .epoch = epoch, .wait = {}};
  {
    const Lock lock(mutex_);
    ++steps_;
    if (stage_ == Stage::idle && is_due()) {
      stage_ = Stage::preparing;
      steps_ = 0;
      last_ = env_.now();
    } else if (stage_ == Stage::prepared) {
      stage_ = Stage::cutting;
      cut.number = next_++;
    } else {
      return;
    }
  }
  std::function<Stage()> task;
  if (cut.number == 0) {
    task = [this, wait = asking_.prepare()] { return prepare(wait); };
  } else {
    cut.wait = asking_.begin(cut_folder(options_.folder, cut.number));
    task = [this, cut] { return finish(cut); };
  }
  {
    const Lock lock(mutex_);
    task_ = std::move(task);
  }
  changed_.notify_all();
}

void Cuts::run(const std::stop_token& stop) {
  for (;;) {
    std::function<Stage()> task;
    {
      const Lock lock(mutex_);
      const auto has_task = [&]() REQUIRES(mutex_) { return task_ != nullptr; };
      changed_.wait(mutex_, stop, has_task);
      if (task_ == nullptr) return;
      task = std::exchange(task_, nullptr);
    }
    const Stage next = task();
    const Lock lock(mutex_);
    stage_ = next;
  }
}

Cuts::Stage Cuts::prepare(const std::function<void()>& wait) {
  try {
    wait();
    return Stage::prepared;
  } catch (const std::exception& e) {
    options_.log(fmt::format("no cut below {}: {}", options_.folder, e.what()));
    return Stage::idle;
  }
}

/// Where a server had gone on too far, it is tried again after the next step.
Cuts::Stage Cuts::finish(const Cut& cut) {
  const std::string folder = cut_folder(options_.folder, cut.number);
  try {
    const SavedCut made = cut.wait();
    if (made.late) return Stage::prepared;
    save_cut(env_, folder, made, {.epoch = cut.epoch}, cut.number);
    options_.log(fmt::format("cut {}: {} rows, {} bytes, {} of them new", folder, rows_of(made),
                             made.bytes, made.added));
    remove_older(cut.number);
  } catch (const std::exception& e) {
    options_.log(fmt::format("no cut {}: {}", folder, e.what()));
  }
  return Stage::idle;
}

/// A cut without its manifest is none, so that goes first.
void Cuts::remove_older(uint64_t number) {
  std::vector<uint64_t> finished;
  for (const uint64_t each : cut_numbers(options_.folder)) {
    const std::string folder = cut_folder(options_.folder, each);
    if (each <= number && is_save(env_, folder))
      finished.push_back(each);
    else if (each < number)
      fs::remove_all(folder);
  }
  for (size_t i = 0; i + options_.keep < finished.size(); ++i) {
    const std::string folder = cut_folder(options_.folder, finished[i]);
    env_.remove_file(manifest_path(folder));
    env_.sync_folder(folder);
    fs::remove_all(folder);
  }
}

}  // namespace argosy
