#include "argosy/doctor/probes.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <sstream>
#include <thread>

#include "argosy/base/descriptor.h"
#include "argosy/base/error.h"
#include "argosy/world/proc_files.h"

namespace argosy {
namespace {

namespace fs = std::filesystem;
using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

/// "INDEX found ADDRESS ADDRESS ...\n" or "INDEX unknown REASON\n".
std::string look_up_line(size_t index, const std::string& name) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int error = ::getaddrinfo(name.c_str(), nullptr, &wanted, &first);
  const std::string number = std::to_string(index);
  if (error != 0)
    return number + " unknown " +
           (error == EAI_SYSTEM ? std::strerror(errno) : ::gai_strerror(error)) + "\n";
  const Addresses owner(first, &::freeaddrinfo);
  std::string line = number + " found";
  for (const addrinfo* at = first; at != nullptr; at = at->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(at->ai_addr, at->ai_addrlen, text.data(), text.size(), nullptr, 0,
                      NI_NUMERICHOST) == 0)
      line += std::string(" ") + text.data();
  }
  return line + "\n";
}

/// Runs in a child process: there is no other way to stop a resolver that hangs.
void look_up_all(const std::vector<std::string>& names, int pipe) {
  constexpr size_t kThreads = 32;
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t index = next++; index < names.size(); index = next++) {
      const std::string line = look_up_line(index, names[index]);
      if (::write(pipe, line.data(), line.size()) < 0) return;
    }
  };
  std::vector<std::jthread> threads;
  for (size_t i = 1; i < std::min(kThreads, names.size()); ++i) threads.emplace_back(work);
  work();
}

void read_look_up(const std::string& line, std::vector<LookUp>& results) {
  const std::vector<std::string> words = words_of(line);
  const auto index = leading_number(line);
  if (!index || *index >= results.size() || words.size() < 2) return;
  LookUp& result = results[*index];
  if (words[1] == "found") {
    result.outcome = LookUp::Outcome::found;
    result.addresses.assign(words.begin() + 2, words.end());
    return;
  }
  result.outcome = LookUp::Outcome::unknown;
  result.error = line.substr(std::min(line.size(), words[0].size() + words[1].size() + 2));
}

/// An address as numbers, which needs no name service.
Addresses resolve_number(const std::string& address, uint16_t port) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found);
  return {error == 0 ? found : nullptr, &::freeaddrinfo};
}

/// "WHAT: reason" of errno.
std::string failed(const char* what) { return std::string(what) + ": " + std::strerror(errno); }

/// A byte from one socket to the other.
bool send_byte(const Descriptor& from, const Descriptor& to) {
  constexpr int kPatience = 50;  // ms
  char byte = 'a';
  if (::send(from.get(), &byte, 1, MSG_NOSIGNAL) != 1) return false;
  pollfd ready{to.get(), POLLIN, 0};
  if (::poll(&ready, 1, kPatience) == 0) {
    errno = ETIMEDOUT;
    return false;
  }
  return ::recv(to.get(), &byte, 1, 0) == 1;
}

FoundProgram look_at_program(const std::string& path) {
  struct stat state {};
  if (::stat(path.c_str(), &state) != 0) return {.problem = path + ": " + std::strerror(errno)};
  if (S_ISDIR(state.st_mode)) return {.problem = path + " is a folder"};
  if (::access(path.c_str(), X_OK) != 0)
    return {.path = path, .problem = path + " is not executable", .exists = true};
  return {.path = path, .exists = true};
}

}  // namespace

std::vector<LookUp> look_up_names(const std::vector<std::string>& names, Deadline deadline) {
  std::vector<LookUp> results(names.size());
  if (names.empty()) return results;
  const ShortChild child = run_in_child([&](int pipe) { look_up_all(names, pipe); }, deadline);
  std::istringstream lines(child.output);
  for (std::string line; std::getline(lines, line);) read_look_up(line, results);
  return results;
}

std::string try_loopback() {
  const Descriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
      client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (listening.get() < 0 || client.get() < 0) return failed("no socket");
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(at);
  auto* const address = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listening.get(), address, size) != 0) return failed("cannot bind 127.0.0.1");
  if (::listen(listening.get(), 1) != 0) return failed("cannot listen on 127.0.0.1");
  if (::getsockname(listening.get(), address, &size) != 0) return failed("no port on 127.0.0.1");
  if (::connect(client.get(), address, size) != 0 && errno != EINPROGRESS)
    return failed("cannot connect to 127.0.0.1");
  constexpr int kPatience = 50;  // ms
  pollfd ready{listening.get(), POLLIN, 0};
  if (::poll(&ready, 1, kPatience) <= 0) return "no connection to 127.0.0.1 arrives";
  const Descriptor server(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (server.get() < 0) return failed("cannot accept on 127.0.0.1");
  if (!send_byte(client, server) || !send_byte(server, client))
    return failed("no byte goes over 127.0.0.1 and back");
  return "";
}

int try_to_listen(const std::string& address, uint16_t port) {
  const Addresses found = resolve_number(address, port);
  if (found == nullptr) return EADDRNOTAVAIL;
  const Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return errno;
  // As the launcher does: connections that wind down do not count.
  const int yes = 1;
  if (::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0) return errno;
  if (::bind(socket.get(), found->ai_addr, found->ai_addrlen) != 0) return errno;
  return ::listen(socket.get(), 1) == 0 ? 0 : errno;
}

FolderState look_at_folder(const std::string& folder) {
  std::error_code error;
  fs::path at = fs::absolute(folder, error);
  while (!fs::exists(at, error) && at.has_relative_path()) at = at.parent_path();
  FolderState state{.existing = at.string()};
  if (!fs::is_directory(at, error))
    state.problem = "is not a folder";
  else if (::access(at.c_str(), W_OK | X_OK) != 0)
    state.problem = std::strerror(errno);
  struct statvfs disk {};
  if (::statvfs(at.c_str(), &disk) != 0) return state;
  state.read_only = (disk.f_flag & ST_RDONLY) != 0;
  state.free_bytes = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (disk.f_files > 0) state.free_inodes = disk.f_favail;
  return state;
}

FoundProgram find_program(const std::string& name) {
  if (name.find('/') != std::string::npos) return look_at_program(name);
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path == nullptr ? "" : path);
  FoundProgram found{.problem = name + " is in no folder of PATH"};
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (::access(candidate.c_str(), F_OK) != 0) continue;
    found = look_at_program(candidate);
    if (found.problem.empty()) return found;
  }
  return found;
}

}  // namespace argosy
