#include "argosy/data/file_list.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "argosy/base/error.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> files_of_folder(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unreadable;
    const bool hidden = at->path().filename().string().starts_with('.');
    if (!hidden && !at->is_directory(unreadable)) files.push_back(at->path().string());
  }
  check<ConfigError>(!error, folder, ": ", error.message());
  check<ConfigError>(!files.empty(), folder, ": the folder holds no file");
  std::ranges::sort(files);
  return files;
}

std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found{};
  const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  if (status == 0) paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  check<ConfigError>(!paths.empty(), pattern, ": no file matches");
  return paths;
}

}  // namespace

std::vector<std::string> list_files(std::span<const std::string> sources) {
  std::vector<std::string> files;
  const auto add = [&](const std::string& path) {
    std::error_code error;
    if (!fs::is_directory(path, error)) return files.push_back(path);
    for (std::string& file : files_of_folder(path)) files.push_back(std::move(file));
  };
  for (const std::string& source : sources) {
    std::error_code error;
    if (fs::exists(source, error)) {
      add(source);
      continue;
    }
    check<ConfigError>(source.find_first_of("*?[") != std::string::npos, source,
                       ": no such file or folder");
    for (const std::string& path : matches_of(source)) add(path);
  }
  check<ConfigError>(!files.empty(), "the list of files is empty");
  return files;
}

std::span<const std::string> files_of_worker(std::span<const std::string> files, size_t worker,
                                             size_t workers) {
  check<ConfigError>(worker < workers, "worker ", worker, " but only ", workers, " workers");
  const size_t each = files.size() / workers, more = files.size() % workers;
  const size_t first = worker * each + std::min(worker, more);
  return files.subspan(first, each + (worker < more ? 1 : 0));
}

}  // namespace argosy
