#pragma once

#include <span>
#include <string>
#include <vector>

namespace argosy {

/// Expands paths, patterns (* ? [a-z]) and folders in place; matches and folder contents are
/// sorted. A folder gives its files, without subfolders and hidden files (".x"). Throws ConfigError
/// naming a source that gives no file.
std::vector<std::string> list_files(std::span<const std::string> sources);

/// The contiguous share of one worker: the first (files % workers) take one more.
std::span<const std::string> files_of_worker(std::span<const std::string> files, size_t worker,
                                             size_t workers);

}  // namespace argosy
