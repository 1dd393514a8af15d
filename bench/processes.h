#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include "argosy/base/error.h"
#include "argosy/net/endpoint.h"

namespace argosy::benches {

/// A child process that does `job` and returns its result, a plain struct.
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

  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = 0;
  int from_ = -1;
};

/// Resident bytes of this process.
inline double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  check<IoError>(static_cast<bool>(statm >> total >> resident), "cannot read /proc/self/statm");
  return resident * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

/// The most that it has had.
inline double peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  double kilobytes = 0;
  for (std::string word; status >> word;)
    if (word == "VmHWM:") status >> kilobytes;
  check<IoError>(kilobytes > 0, "cannot read VmHWM of /proc/self/status");
  return kilobytes * 1024;
}

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
