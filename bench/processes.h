#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>

#include "argosy/base/error.h"
#include "argosy/net/endpoint.h"

namespace argosy::benches {

/// A process of its own that does `job` and hands back what it gives, a plain struct.
template <class Result>
class BenchProcess {
 public:
  template <class Job>
  explicit BenchProcess(const Job& job) {
    int ends[2];
    check<IoError>(::pipe(ends) == 0, "cannot make a pipe");
    pid_ = ::fork();
    check<IoError>(pid_ >= 0, "cannot fork");
    if (pid_ == 0) {
      ::close(ends[0]);
      Result result;
      try {
        result = job();
      } catch (const std::exception& e) {
        std::fprintf(stderr, "%s\n", e.what());
        ::_exit(1);
      }
      const bool written = ::write(ends[1], &result, sizeof result) == sizeof result;
      ::_exit(written ? 0 : 1);
    }
    ::close(ends[1]);
    from_ = ends[0];
  }
  Result wait() {
    Result result;
    const bool read = ::read(from_, &result, sizeof result) == sizeof result;
    ::close(from_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    check<IoError>(read && status == 0, "a process of the benchmark failed");
    return result;
  }

 private:
  pid_t pid_ = 0;
  int from_ = -1;
};

/// A socket that listens on a free port, for a server to inherit.
inline int listening_socket(Endpoint& at) {
  const int fd = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  check<IoError>(fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     ::listen(fd, SOMAXCONN) == 0 &&
                     ::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0,
                 "cannot listen on loopback");
  at = {"127.0.0.1", ntohs(address.sin_port)};
  return fd;
}

}  // namespace argosy::benches
