#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "argosy/launch/launcher.h"

namespace argosy::launch {

/// A connection to another launcher: lines both ways, and signs of life. Never blocks.
class LauncherLink {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::milliseconds kBeat{1000};  // between signs of life

  explicit LauncherLink(Descriptor socket);

  int fd() const { return socket_.get(); }
  const Descriptor& socket() const { return socket_; }
  const std::string& peer() const { return peer_; }
  bool closed() const { return closed_; }
  Clock::time_point heard() const { return heard_; }  // when something came last
  void close() { closed_ = true; }

  void say(const std::string& line);
  /// All that was said has reached the other machine, or never will.
  bool said_all() const;
  /// Says that this launcher lives, if it is time to.
  void beat(Clock::time_point now);
  /// Reads the input that has arrived. An endless line comes from no launcher.
  void receive(Clock::time_point now);
  /// The next line that is more than a sign of life.
  std::optional<std::string> line();

 private:
  void flush();

  Descriptor socket_;
  std::string peer_, in_, out_;
  Clock::time_point heard_, said_ = {};
  bool closed_ = false;
};

/// Escapes any text into one word of a line; "-" for an empty one.
std::string to_word(std::string_view text);
std::string from_word(std::string_view word);

/// "member NODE KIND HOST PORT STAGE DEVICE CARDS"
std::string to_line(const Member& member);
/// Absent if the line describes no member.
std::optional<Member> member_of(const std::string& line);

}  // namespace argosy::launch
