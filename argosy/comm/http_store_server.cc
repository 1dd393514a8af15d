#include "argosy/comm/http_store_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "argosy/net/sockets.h"

namespace argosy::comm {
namespace {

constexpr size_t kMost = size_t{1} << 20;  // bytes of a message
constexpr size_t kRequests = 4096;         // at once

Descriptor listen_at(const Endpoint& at) {
  Descriptor socket = bind_to(at);
  start_listening(socket, at);
  return socket;
}

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

std::string response(const std::string& status, const std::string& body = "") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: close\r\n\r\n" + body;
}

}  // namespace

HttpState parse_http(const std::string& bytes, bool closed, HttpMessage& message) {
  if (bytes.size() > kMost) return HttpState::broken;
  const HttpState missing = closed ? HttpState::broken : HttpState::incomplete;
  const size_t head_end = bytes.find("\r\n\r\n");
  if (head_end == std::string::npos) return missing;
  const std::string head = bytes.substr(0, head_end);
  const size_t first_end = std::min(head.find("\r\n"), head.size());
  message.first_line = head.substr(0, first_end);

  size_t length = 0;
  const std::string fields = lower(head.substr(first_end)), name = "\r\ncontent-length:";
  if (const size_t at = fields.find(name); at != std::string::npos) {
    const size_t digits = fields.find_first_not_of(' ', at + name.size());
    if (digits == std::string::npos) return HttpState::broken;
    const auto [end, error] =
        std::from_chars(fields.data() + digits, fields.data() + fields.size(), length);
    if (error != std::errc() || length > kMost) return HttpState::broken;
  }
  message.body = bytes.substr(head_end + 4, length);
  return message.body.size() == length ? HttpState::complete : missing;
}

HttpStoreServer::HttpStoreServer(const Endpoint& at)
    : listening_(listen_at(at)),
      wake_(::eventfd(0, EFD_CLOEXEC)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

uint16_t HttpStoreServer::port() const { return port_of(listening_); }

void HttpStoreServer::serve(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] { ::eventfd_write(wake_.get(), 1); });
  while (!stop.stop_requested()) {
    std::vector<pollfd> polled = {{listening_.get(), POLLIN, 0}, {wake_.get(), POLLIN, 0}};
    for (const Request& request : requests_)
      polled.push_back(
          {request.socket.get(), static_cast<short>(request.answer.empty() ? POLLIN : POLLOUT), 0});
    ::poll(polled.data(), polled.size(), -1);
    while (auto socket = accept_one(listening_)) {
      if (requests_.size() < kRequests) requests_.push_back({.socket = std::move(*socket)});
    }
    for (Request& request : requests_) attend(request);
    std::erase_if(requests_, [](const Request& request) { return request.over; });
  }
}

void HttpStoreServer::attend(Request& request) {
  if (request.answer.empty()) read(request);
  if (request.answer.empty() || request.over) return;
  const ssize_t n = ::send(request.socket.get(), request.answer.data() + request.sent,
                           request.answer.size() - request.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  request.sent += static_cast<size_t>(std::max<ssize_t>(n, 0));
  request.over = n < 0 || request.sent == request.answer.size();
}

void HttpStoreServer::read(Request& request) {
  char bytes[4096];
  const ssize_t n = ::recv(request.socket.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  request.bytes.append(bytes, static_cast<size_t>(std::max<ssize_t>(n, 0)));
  HttpMessage message;
  const HttpState state = parse_http(request.bytes, n <= 0, message);
  if (state == HttpState::incomplete) return;
  const std::string& line = message.first_line;
  const size_t method = line.find(' '), path = line.find(' ', method + 1);
  if (state == HttpState::broken || path == std::string::npos || method == std::string::npos)
    request.answer = response("400 Bad Request");
  else
    request.answer =
        answer_to(line.substr(0, method), line.substr(method + 1, path - method - 1), message.body);
}

std::string HttpStoreServer::answer_to(const std::string& method, const std::string& path,
                                       const std::string& body) {
  if (method == "PUT") {
    texts_[path] = body;
    return response("200 OK");
  }
  if (method == "DELETE") return response(texts_.erase(path) > 0 ? "200 OK" : "404 Not Found");
  if (method != "GET") return response("405 Method Not Allowed");
  const auto found = texts_.find(path);
  return found == texts_.end() ? response("404 Not Found") : response("200 OK", found->second);
}

}  // namespace argosy::comm
