#pragma once

#include <functional>
#include <memory>
#include <string>

#include "argosy/base/env.h"
#include "argosy/net/endpoint.h"
#include "argosy/net/frame.h"

namespace argosy {

/// One ordered stream of frames to a peer and back. Thread safety: full.
class Link {
 public:
  virtual ~Link() = default;
  /// Never blocks. After a close it does nothing. A link whose peer does not read is closed when
  /// more than LinkOptions::max_queued bytes wait: "slow reader".
  virtual void send(OutFrame frame) = 0;
  /// on_close follows, once, with this reason; what has been sent before still goes out if it can.
  virtual void close(std::string reason) = 0;
  /// The other side's address, for messages.
  virtual const std::string& peer() const = 0;
};

/// What happens on a link. Calls come one at a time for each link, never inside a call of Link or
/// Transport, and none after on_close. What on_frame throws is treated like a frame that cannot be
/// right; the others must not throw.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  virtual void on_frame(InFrame frame) = 0;
  virtual void on_close(const std::string& reason) = 0;
};

struct LinkOptions {
  bool sum_payloads = true;  // send checksums of payloads; those that come are checked
  uint64_t max_frame = uint64_t{1} << 30;   // bytes of a payload; larger ones close the link
  uint64_t max_queued = uint64_t{1} << 31;  // bytes that wait to be sent
  /// Larger frames are summed and written by a thread of the transport, not by the caller of send.
  uint64_t inline_limit = ~uint64_t{0};
};

/// Carries frames between processes. A frame that cannot be right (magic, version, sum, length)
/// closes its link with that reason, and the peer is sent an error frame that says so; others are
/// not touched. To destroy it, never inside an event, closes everything without a word: when it
/// returns no event is running, none will come, and all are let go. Links may live on; they do
/// nothing. Thread safety: full.
class Transport {
 public:
  /// The events of a link that was accepted. They are held until on_close has returned.
  using OnAccept = std::function<std::shared_ptr<LinkEvents>(std::shared_ptr<Link>)>;
  /// A link, or null and the reason.
  using OnConnect =
      std::function<std::shared_ptr<LinkEvents>(std::shared_ptr<Link>, const std::string& error)>;
  virtual ~Transport() = default;
  /// Returns the address with the real port. Throws IoError with address and reason. Listens until
  /// the transport ends.
  virtual Endpoint listen(const Endpoint& at, OnAccept on_accept) = 0;
  /// Takes over a socket that listens already.
  virtual Endpoint listen_fd(int fd, OnAccept on_accept) = 0;
  /// on_connect comes once, before `within` is over; what it returns gets the link's events (it may
  /// be null where there is no link).
  virtual void connect(const Endpoint& to, Env::Duration within, OnConnect on_connect) = 0;
};

/// Over TCP. `threads` of its own call the events; links are spread over them.
std::unique_ptr<Transport> tcp_transport(const LinkOptions& options = {}, size_t threads = 1);

}  // namespace argosy
