#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>

#include "argosy/base/error.h"
#include "argosy/comm/http_store_server.h"
#include "argosy/comm/store.h"
#include "argosy/net/sockets.h"

namespace argosy::comm {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kConnect = 500ms, kAnswer = 5s;

bool becomes_ready(const Descriptor& socket, short events, Clock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
  pollfd ready{socket.get(), events, 0};
  return left > 0ms && ::poll(&ready, 1, static_cast<int>(left.count())) == 1;
}

bool send_all(const Descriptor& socket, const std::string& bytes, Clock::time_point until) {
  size_t sent = 0;
  while (sent < bytes.size() && becomes_ready(socket, POLLOUT, until)) {
    const ssize_t n = ::send(socket.get(), bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
    sent += static_cast<size_t>(n < 0 ? 0 : n);
  }
  return sent == bytes.size();
}

class HttpStore final : public Store {
 public:
  HttpStore(Endpoint at, const std::string& job)
      : at_(std::move(at)), scope_("/" + path_part(job) + "/") {}

  std::optional<std::string> find(const std::string& name) override {
    const auto answer = ask("GET", name, "");
    if (!answer || answer->first_line.find(" 200") == std::string::npos) return std::nullopt;
    return answer->body;
  }
  bool put(const std::string& name, const std::string& text) override {
    const auto answer = ask("PUT", name, text);
    if (!answer) return false;
    check<IoError>(answer->first_line.find(" 200") != std::string::npos, place(),
                   " does not take the address of a rank: ", answer->first_line);
    return true;
  }
  void remove(const std::string& name) override { ask("DELETE", name, ""); }
  std::string place() const override { return "http://" + at_.text(); }

 private:
  /// Absent if there is no answer.
  std::optional<HttpMessage> ask(const std::string& method, const std::string& name,
                                 const std::string& body) const {
    const auto socket = connect_within(at_, kConnect);
    const auto until = Clock::now() + kAnswer;
    const std::string request = method + " " + scope_ + path_part(name) +
                                " HTTP/1.1\r\nHost: " + at_.text() +
                                "\r\nContent-Length: " + std::to_string(body.size()) +
                                "\r\nConnection: close\r\n\r\n" + body;
    if (!socket || !send_all(*socket, request, until)) return std::nullopt;
    std::string bytes;
    HttpMessage answer;
    while (becomes_ready(*socket, POLLIN, until)) {
      char some[4096];
      const ssize_t n = ::recv(socket->get(), some, sizeof(some), 0);
      if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
      if (n > 0) bytes.append(some, static_cast<size_t>(n));
      const HttpState state = parse_http(bytes, n <= 0, answer);
      if (state == HttpState::complete) return answer;
      if (state == HttpState::broken) return std::nullopt;
    }
    return std::nullopt;
  }

  const Endpoint at_;
  const std::string scope_;
};

}  // namespace

std::unique_ptr<Store> http_store(const Endpoint& at, const std::string& job) {
  return std::make_unique<HttpStore>(at, job);
}

}  // namespace argosy::comm
