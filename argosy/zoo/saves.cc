#include "argosy/zoo/saves.h"

#include <vector>

namespace argosy {
namespace {

namespace fs = std::filesystem;

std::string manifest_of(const std::string& folder) { return folder + "/persistables.argosy"; }

}  // namespace

std::string epoch_folder(const std::string& folder, int64_t epoch) {
  return folder + "/" + std::to_string(epoch);
}

bool is_save(Env& env, const std::string& folder) { return env.file_exists(manifest_of(folder)); }

std::optional<Save> newest_save(Env& env, const std::string& folder) {
  std::vector<std::string> saves;
  const std::string within = folder + "/checkpoint";
  if (is_save(env, within)) saves.push_back(within);
  for (int64_t epoch = 0; is_save(env, epoch_folder(folder, epoch)); ++epoch)
    saves.push_back(epoch_folder(folder, epoch));
  // By time: later epochs of an earlier run may be there as well.
  std::optional<Save> newest;
  for (const std::string& save : saves) {
    const auto written = fs::last_write_time(manifest_of(save));
    if (!newest || written >= newest->written) newest = {save, written};
  }
  return newest;
}

RunningMark::RunningMark(Env& env, const std::string& folder, const std::string& process)
    : env_(env), folder_(folder), path_(folder + "/" + process + ".running") {}

void RunningMark::write() {
  env_.make_directories(folder_);
  write_file_atomically(env_, path_, {});
}

void RunningMark::remove() { env_.remove_file(path_); }

bool RunningMark::is_before(const Save& save) const {
  return env_.file_exists(path_) && fs::last_write_time(path_) <= save.written;
}

}  // namespace argosy
