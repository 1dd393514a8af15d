#pragma once

#include <span>
#include <string>
#include <vector>

namespace argosy {

/// The files that paths, patterns (* ? [a-z]) and folders stand for, each in its place in the list,
/// matches and the content of a folder sorted. A folder gives its own files, not those of folders
/// below, and no hidden ones (".x"). Throws ConfigError naming what stands for no file.
std::vector<std::string> list_files(std::span<const std::string> sources);

/// The contiguous share of one worker: the first (files % workers) take one more.
std::span<const std::string> files_of_worker(std::span<const std::string> files, size_t worker,
                                             size_t workers);

}  // namespace argosy
