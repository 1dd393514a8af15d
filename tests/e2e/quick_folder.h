#pragma once

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

namespace argosy::e2e {

/// A new folder. Saves go to the disk before they count; a disk in memory, where there is one, is
/// quicker.
inline std::filesystem::path quick_folder() {
  std::error_code none;
  const std::filesystem::path memory = "/dev/shm";
  const bool usable =
      std::filesystem::is_directory(memory, none) && ::access(memory.c_str(), W_OK) == 0;
  std::string name =
      ((usable ? memory : std::filesystem::temp_directory_path()) / "argosy_e2e_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr)
    throw std::system_error(errno, std::generic_category(), name);
  return name;
}

}  // namespace argosy::e2e
