#pragma once

#include <map>
#include <string>
#include <thread>
#include <vector>

#include "argosy/base/descriptor.h"
#include "argosy/net/endpoint.h"

namespace argosy::comm {

/// HTTP server for texts by path: PUT, GET (404 if missing) and DELETE, one request per connection.
/// Runs on its own thread until destroyed.
class HttpStoreServer {
 public:
  /// Throws IoError where it cannot listen there.
  explicit HttpStoreServer(const Endpoint& at);
  uint16_t port() const;

 private:
  struct Request {
    Descriptor socket;
    std::string bytes = {}, answer = {};
    size_t sent = 0;
    bool over = false;
  };

  void serve(const std::stop_token& stop);
  void attend(Request& request);
  void read(Request& request);
  std::string answer_to(const std::string& method, const std::string& path,
                        const std::string& body);

  const Descriptor listening_, wake_;
  std::map<std::string, std::string> texts_;
  std::vector<Request> requests_;
  std::jthread thread_;  // the last member: it ends before the others do
};

/// The parts of an HTTP message that are needed here.
struct HttpMessage {
  std::string first_line, body;
};
enum class HttpState : uint8_t { incomplete, complete, broken };
/// Parses what has arrived so far; `closed`: nothing more will.
HttpState parse_http(const std::string& bytes, bool closed, HttpMessage& message);

}  // namespace argosy::comm
