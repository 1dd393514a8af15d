#pragma once

#include <optional>

#include "argosy/base/error.h"
#include "argosy/ps/server.h"

namespace argosy::ps {

/// A worker that can never be admitted; it should not retry.
struct Server::Refused : ConfigError {
  using ConfigError::ConfigError;
};

/// One link of a server. A bad frame is answered with an error frame, and the link closed.
class Server::Session final : public LinkEvents {
 public:
  Session(std::shared_ptr<Server> server, std::shared_ptr<Link> link)
      : server_(std::move(server)), link_(std::move(link)) {}

  void on_frame(InFrame frame) override;
  void on_part() override { server_->heard(*this); }
  void on_close(const std::string& reason) override { server_->lost(*this, reason); }

 private:
  friend Server;
  void refuse(Severity severity, const std::string& why);

  std::shared_ptr<Server> server_;
  std::shared_ptr<Link> link_;
  std::optional<uint32_t> worker_;  // once it has said hello
  bool refused_ = false;
};

}  // namespace argosy::ps
