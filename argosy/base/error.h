#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace argosy {

/// Root of everything argosy throws; what() is one line a user can act on.
struct Error : std::runtime_error {
  using runtime_error::runtime_error;
};
struct ConfigError : Error {  // the user can fix it: a flag, a YAML key, a shape
  using Error::Error;
};
struct DataError : Error {  // bytes are wrong: a sample, a frame, a file, a NaN
  using Error::Error;
};
struct IoError : Error {  // the world failed: a peer, a socket, a disk
  using Error::Error;
};

template <class E = Error, class... Parts>
[[noreturn]] void fail(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw E(message.str());
}

/// check<ConfigError>(n > 0, "batch_size must be positive, got ", n);
template <class E = Error, class... Parts>
void check(bool ok, const Parts&... parts) {
  if (ok) [[likely]]
    return;
  fail<E>(parts...);
}

}  // namespace argosy
