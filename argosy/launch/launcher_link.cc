#include "argosy/launch/launcher_link.h"

#include <fmt/format.h>
#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "argosy/base/percent.h"
#include "argosy/net/sockets.h"

namespace argosy::launch {
namespace {

constexpr size_t kLongestLine = 1 << 20;

constexpr std::array kKinds = {ProcessKind::server, ProcessKind::worker, ProcessKind::heter_worker,
                               ProcessKind::coordinator};

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK; }

}  // namespace

LauncherLink::LauncherLink(Descriptor socket)
    : socket_(std::move(socket)), peer_(peer_address(socket_)), heard_(Clock::now()) {}

void LauncherLink::say(const std::string& line) {
  out_ += line + "\n";
  flush();
}

bool LauncherLink::said_all() const {
  int unacknowledged = 0;
  if (closed_ || ::ioctl(socket_.get(), SIOCOUTQ, &unacknowledged) != 0) return true;
  return out_.empty() && unacknowledged == 0;
}

void LauncherLink::beat(Clock::time_point now) {
  if (now - said_ < kBeat) return;
  said_ = now;
  say("alive");
}

void LauncherLink::receive(Clock::time_point now) {
  flush();
  std::array<char, 4096> block;
  while (!closed_) {
    const ssize_t n = ::recv(socket_.get(), block.data(), block.size(), MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block()) return;
    if (n > 0) heard_ = now;
    if (n > 0) in_.append(block.data(), static_cast<size_t>(n));
    closed_ = n <= 0 || in_.size() > kLongestLine;
  }
}

std::optional<std::string> LauncherLink::line() {
  while (true) {
    const size_t end = in_.find('\n');
    if (end == std::string::npos) return std::nullopt;
    std::string found = in_.substr(0, end);
    in_.erase(0, end + 1);
    if (found != "alive") return found;
  }
}

void LauncherLink::flush() {
  while (!out_.empty() && !closed_) {
    const ssize_t n = ::send(socket_.get(), out_.data(), out_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && would_block()) return;
    closed_ = closed_ || n < 0;
    if (n > 0) out_.erase(0, static_cast<size_t>(n));
  }
}

std::string to_word(std::string_view text) {
  if (text.empty()) return "-";
  return percent_escape(text, [](char c) { return static_cast<unsigned char>(c) > ' '; });
}

std::string from_word(std::string_view word) {
  if (word == "-") return "";
  return percent_unescape(word).value_or(std::string(word));
}

std::string to_line(const Member& member) {
  return fmt::format("member {} {} {} {} {} {} {}", member.node, name_of(member.kind),
                     to_word(member.at.host), member.at.port, member.stage, to_word(member.device),
                     to_word(fmt::format("{}", fmt::join(member.cards, ","))));
}

std::optional<Member> member_of(const std::string& line) {
  std::istringstream in(line);
  std::string kind, host, device, cards;
  Member member;
  in >> kind >> member.node >> kind >> host >> member.at.port >> member.stage >> device >> cards;
  const auto found =
      std::ranges::find_if(kKinds, [&](ProcessKind each) { return kind == name_of(each); });
  if (!in || found == kKinds.end()) return std::nullopt;
  member.kind = *found;
  member.at.host = from_word(host);
  member.device = from_word(device);
  std::istringstream list(from_word(cards));
  for (std::string card; std::getline(list, card, ',');) member.cards.push_back(card);
  return member;
}

}  // namespace argosy::launch
