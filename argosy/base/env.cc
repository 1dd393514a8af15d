#include "argosy/base/env.h"

namespace argosy {

std::vector<std::byte> Env::read_file(const std::string& path) {
  const auto file = open_file(path);
  std::vector<std::byte> bytes(file->size());
  file->read_at(0, bytes);
  return bytes;
}

uint64_t Env::file_size(const std::string& path) { return open_file(path)->size(); }

void write_file_atomically(Env& env, const std::string& path, std::span<const std::byte> bytes) {
  const std::string beside = path + ".new";
  {
    auto file = env.create_file(beside);
    file->append(bytes);
    file->sync();
  }
  env.rename_file(beside, path);
}

}  // namespace argosy
