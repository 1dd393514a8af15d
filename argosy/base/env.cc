#include "argosy/base/env.h"

namespace argosy {

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
