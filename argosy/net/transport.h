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
  /// on_close follows once, with this reason. Frames already sent still go out if they can.
  virtual void close(std::string reason) = 0;
  /// The other side's address, for messages.
  virtual const std::string& peer() const = 0;
};

/// Receives the events of a link: one at a time, never inside a call of Link or Transport, and none
/// after on_close. If on_frame throws, the frame counts as invalid; the others must not throw.
class LinkEvents {
 public:
  virtual ~LinkEvents() = default;
  virtual void on_frame(InFrame frame) = 0;
  /// Part of a frame has arrived, and more is to come: the peer is alive, however slow the network.
  virtual void on_part() {}
  virtual void on_close(const std::string& reason) = 0;
};

struct LinkOptions {
  bool sum_payloads = true;                 // add checksums; received ones are verified anyway
  uint64_t max_frame = uint64_t{1} << 30;   // bytes of a payload; larger ones close the link
  uint64_t max_queued = uint64_t{1} << 31;  // bytes that wait to be sent
  /// Larger frames are summed and written by a thread of the transport, not by the caller of send.
  uint64_t inline_limit = ~uint64_t{0};
};

/// Carries frames between processes. An invalid frame (magic, version, sum, length) closes its link
/// with that reason and sends the peer an error frame; other links are not affected. The destructor
/// must not run inside an event. It closes everything silently: when it returns no event is
/// running, none will come, and all handlers are released. Links may live on but do nothing. Thread
/// safety: full.
class Transport {
 public:
  /// Returns the handler of an accepted link, which is kept until on_close has returned.
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
  /// Calls on_connect once, within `within`. It returns the link's handler, or null if there is no
  /// link.
  virtual void connect(const Endpoint& to, Env::Duration within, OnConnect on_connect) = 0;
};

/// Over TCP, with `threads` I/O threads that call the events; each link is served by one of them.
std::unique_ptr<Transport> tcp_transport(const LinkOptions& options = {}, size_t threads = 1);

}  // namespace argosy
