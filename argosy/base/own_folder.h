#pragma once

#include <filesystem>

namespace argosy {

/// The folder that this program is in.
inline std::filesystem::path own_folder() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
}

/// The models and tools shipped beside the programs.
inline std::filesystem::path shared_folder() {
  return own_folder().parent_path() / "share" / "argosy";
}

}  // namespace argosy
