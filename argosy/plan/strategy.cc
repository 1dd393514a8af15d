#include "argosy/plan/strategy.h"

#include "argosy/base/error.h"

namespace argosy {

EmbeddingMode parse_embedding_mode(std::string_view text, std::string_view setting) {
  for (const EmbeddingMode mode : {EmbeddingMode::replicated, EmbeddingMode::sharded})
    if (text == name(mode)) return mode;
  fail<ConfigError>(setting, " is '", text, "', expected replicated or sharded");
}

const char* name(EmbeddingMode mode) {
  return mode == EmbeddingMode::sharded ? "sharded" : "replicated";
}

}  // namespace argosy
