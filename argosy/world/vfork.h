#pragma once

#include <fcntl.h>
#include <pthread.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "argosy/base/descriptor.h"
#include "argosy/base/error.h"

namespace argosy {

/// A copy above `last`, so that no dup2 of a child overwrites what another one needs. Throws
/// IoError.
inline Descriptor copy_above(int fd, int last) {
  Descriptor copy(::fcntl(fd, F_DUPFD_CLOEXEC, last + 1));
  check<IoError>(copy.get() >= 0, "no file descriptor for a child: ", std::strerror(errno));
  return copy;
}

/// The child runs `become`, which must not return and makes system calls only: it has our memory
/// until it is another program. A fork would copy the page tables, which takes long in a large
/// process. Signals are held back, as no handler may run in the child meanwhile. Throws IoError.
template <class F>
pid_t vfork_into(const F& become) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) {
    become();
    _exit(1);
  }
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  check<IoError>(pid > 0, "cannot start a child: ", std::strerror(error));
  return pid;
}

}  // namespace argosy
