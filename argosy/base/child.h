#pragma once

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

/// What a child does before it becomes another program. System calls only: its memory may be its
/// parent's until then.
namespace argosy {

/// A group of its own, and its end when the parent is gone. False: the parent is gone already.
inline bool join_new_group(pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  return ::getppid() == parent;
}

/// No signal is handled, ignored or held back.
inline void restore_signals() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

}  // namespace argosy
