#include "argosy/job/saves.h"

#include <fmt/format.h>

#include <sstream>
#include <vector>

#include "argosy/base/error.h"
#include "argosy/job/cuts.h"
#include "argosy/train/checkpoint.h"
#include "argosy/train/manifest.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

const std::string kResumes = "resumes\n";

std::string read_text(Env& env, const std::string& path) {
  const std::vector<std::byte> bytes = env.read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string epoch_folder(const std::string& folder, int64_t epoch) {
  return folder + "/" + std::to_string(epoch);
}

bool is_save(Env& env, const std::string& folder) { return env.file_exists(manifest_path(folder)); }

std::optional<Save> newest_save(Env& env, const std::string& folder) {
  std::vector<std::string> saves;
  const std::string within = folder + "/checkpoint";
  if (is_save(env, within)) saves.push_back(within);
  for (int64_t epoch = 0; is_save(env, epoch_folder(folder, epoch)); ++epoch)
    saves.push_back(epoch_folder(folder, epoch));
  for (const uint64_t number : cut_numbers(folder))
    if (const std::string cut = cut_folder(folder, number); is_save(env, cut)) saves.push_back(cut);
  // By time: later epochs of an earlier run may be there as well.
  std::optional<Save> newest;
  for (const std::string& save : saves) {
    const auto written = fs::last_write_time(manifest_path(save));
    if (!newest || written >= newest->written) newest = {save, written};
  }
  return newest;
}

SaveNotes::SaveNotes(Env& env, const std::string& folder, const std::string& process)
    : env_(env),
      folder_(folder),
      path_(folder + "/" + process + ".running"),
      launch_path_(folder + "/" + process + ".launch") {}

std::string SaveNotes::text() const {
  return env_.file_exists(path_) ? read_text(env_, path_) : "";
}

void SaveNotes::write(const std::string& text) {
  write_file_atomically(env_, path_, std::as_bytes(std::span(text)));
}

void SaveNotes::begin(uint64_t run) {
  if (folder_.empty()) return;
  const Lock lock(mutex_);
  env_.make_directories(folder_);
  write(fmt::format("run {}\n", run));
}

uint64_t SaveNotes::run() const {
  if (folder_.empty()) return 0;
  const Lock lock(mutex_);
  std::istringstream lines(text());
  std::string word;
  uint64_t run = 0;
  return lines >> word >> run && word == "run" ? run : 0;
}

void SaveNotes::begin_to_resume() {
  if (folder_.empty() || resumes()) return;
  const Lock lock(mutex_);
  write(text() + kResumes);
}

void SaveNotes::has_resumed() {
  if (folder_.empty()) return;
  const Lock lock(mutex_);
  std::string all = text();
  if (const size_t at = all.find(kResumes); at != std::string::npos)
    write(all.erase(at, kResumes.size()));
}

bool SaveNotes::resumes() const {
  if (folder_.empty()) return false;
  const Lock lock(mutex_);
  return text().find(kResumes) != std::string::npos;
}

bool SaveNotes::are_of(const std::string& launch) const {
  if (folder_.empty() || launch.empty()) return true;
  const Lock lock(mutex_);
  return env_.file_exists(launch_path_) && read_text(env_, launch_path_) == launch;
}

void SaveNotes::begun_by(const std::string& launch) {
  if (folder_.empty() || launch.empty() || are_of(launch)) return;
  const Lock lock(mutex_);
  env_.make_directories(folder_);
  write_file_atomically(env_, launch_path_, std::as_bytes(std::span(launch)));
}

void SaveNotes::add(const std::string& folder, uint64_t generation) {
  if (folder_.empty()) return;
  const Lock lock(mutex_);
  write(text() + fmt::format("save {} {}\n", generation, folder));
}

void SaveNotes::remove() {
  if (folder_.empty()) return;
  const Lock lock(mutex_);
  env_.remove_file(path_);
  env_.remove_file(launch_path_);
}

std::optional<Save> SaveNotes::newest() const {
  if (folder_.empty()) return std::nullopt;
  const Lock lock(mutex_);
  std::istringstream lines(text());
  std::optional<Save> newest;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word, folder;
    uint64_t generation = 0;
    if (!(words >> word >> generation >> std::ws) || word != "save") continue;
    std::getline(words, folder);
    if (checkpoint_generation(env_, folder) == generation)
      newest = {folder, fs::last_write_time(manifest_path(folder))};
  }
  return newest;
}

}  // namespace argosy
