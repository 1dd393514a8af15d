#pragma once

#include <optional>

#include "argosy/base/error.h"
#include "argosy/ps/server.h"

namespace argosy {

/// A worker that can never be let in: trying again does not help.
struct Refused : ConfigError {
  using ConfigError::ConfigError;
};

/// One link of a server. What it cannot take is answered with an error frame and ends the link.
class PsServer::Session final : public LinkEvents {
 public:
  Session(std::shared_ptr<PsServer> server, std::shared_ptr<Link> link);
  void on_frame(InFrame frame) override;
  void on_close(const std::string& reason) override;

 private:
  friend PsServer;
  void refuse(Severity severity, const std::string& why);

  std::shared_ptr<PsServer> server_;
  std::shared_ptr<Link> link_;
  std::optional<uint32_t> worker_;  // once it has said hello
  bool refused_ = false;
};

}  // namespace argosy
