#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <thread>
#include <utility>

#include "argosy/base/reminder.h"
#include "argosy/launch/meet.h"
#include "argosy/launch/meeting.h"

namespace argosy::launch {
namespace {

using namespace std::chrono_literals;
using Clock = LauncherLink::Clock;

constexpr auto kLast = 5ms;  // between looks whether the last words have arrived

std::string seconds(Clock::duration time) {
  return fmt::format("{:g} s", std::chrono::duration<double>(time).count());
}

}  // namespace

class Launchers::Links {
 public:
  Links(Reservation& reserved, const std::function<void(const std::string&)>& say)
      : head_(reserved.job.meeting->head), tolerance_(reserved.job.tolerance) {
    for (LauncherLink& link : meet(reserved, say)) others_.emplace_back(std::move(link));
  }
  /// Flushes our last words, the reason why the others end: the link may be down and about to
  /// reconnect.
  ~Links() {
    const auto deadline = Clock::now() + tolerance_.quiet;
    const auto waits = [](Other& other) {
      other.link.receive(Clock::now());
      return !other.link.said_all();
    };
    while (std::ranges::any_of(others_, waits) && Clock::now() < deadline)
      std::this_thread::sleep_for(kLast);
  }
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  std::vector<int> descriptors() const {
    std::vector<int> all;
    for (const Other& other : others_)
      if (!other.link.closed()) all.push_back(other.link.fd());
    return all;
  }

  void tend(Clock::time_point now) {
    for (Other& other : others_) {
      if (other.over) continue;
      LauncherLink& link = other.link;
      link.receive(now);
      // Also of a link that was closed before this: its last words may have come with the first.
      while (auto line = link.line()) take(other, *line);
      link.beat(now);
      speak_of(other, now);
      if (link.closed())
        lose(other, fmt::format("the launcher at {} is gone", link.peer()));
      else if (now - link.heard() > tolerance_.quiet)
        lose(other, fmt::format("the launcher at {} is silent for {}", link.peer(),
                                seconds(tolerance_.quiet)));
      else
        continue;
      link.close();
      other.over = true;
    }
    if (head_ && own_done_ && !end_ && std::ranges::all_of(others_, &Other::done)) {
      end_ = true;
      tell_all("end");
    }
  }

  void fail(const std::string& text, int code) {
    if (failure_) return;  // it came from there
    tell_all(fmt::format("failed {} {}", code, to_word(text)));
  }
  void done() {
    own_done_ = true;
    if (!head_) tell_all("done");
    tend(Clock::now());
  }
  std::string not_done() const {
    if (!head_) return "other machines";
    std::vector<std::string> names;
    for (const Other& other : others_)
      if (!other.done) names.push_back(other.link.peer());
    return fmt::format("{}", fmt::join(names, ", "));
  }

  std::optional<Failure> failure_;
  bool end_ = false;  // the workers of all are done
  std::vector<std::string> notes_;

 private:
  struct Other {
    explicit Other(LauncherLink its_link) : link(std::move(its_link)) {}
    LauncherLink link;
    bool done = false;                     // its workers are
    bool over = false;                     // no more messages from there
    std::optional<Reminder> silence = {};  // that there is
    bool told = false;                     // of it
  };

  void tell_all(const std::string& line) {
    for (Other& other : others_)
      if (!other.link.closed()) other.link.say(line);
  }
  void note(const std::string& text) {
    notes_.push_back(text);
    if (head_) tell_all("note " + to_word(text));
  }
  /// A network may be cut for some seconds: report it, and do nothing else.
  void speak_of(Other& other, Clock::time_point now) {
    if (other.silence && other.silence->since() != other.link.heard()) {
      if (std::exchange(other.told, false))
        note(fmt::format("the launcher at {} is heard of again", other.link.peer()));
      other.silence.reset();
    }
    if (!other.silence) other.silence.emplace(other.link.heard(), tolerance_.patience);
    if (!other.silence->due(now)) return;
    other.told = true;
    note(fmt::format(
        "nothing is heard of the launcher at {} for {:.0f} s; after {} it is taken for "
        "dead",
        other.link.peer(), std::chrono::duration<double>(now - other.link.heard()).count(),
        seconds(tolerance_.quiet)));
  }
  /// Once everybody is done launchers end when they like.
  void lose(const Other& from, const std::string& text) {
    if (end_ || failure_ || (head_ && from.done && own_done_)) return;
    failure_ = Failure{text, 1};
    if (head_) tell_all(fmt::format("failed 1 {}", to_word(text)));
  }
  void take(Other& from, const std::string& line) {
    std::istringstream in(line);
    std::string verb, text;
    int code = 1;
    in >> verb;
    if (verb == "done") from.done = true;
    if (verb == "end") end_ = true;
    if (verb == "note" && in >> text) notes_.push_back("elsewhere: " + from_word(text));
    if (verb != "failed" || failure_) return;
    in >> code >> text;
    failure_ = Failure{from_word(text), code};
    if (!head_) return;
    for (Other& other : others_)
      if (&other != &from) other.link.say(line);
  }

  bool head_, own_done_ = false;
  const Tolerance tolerance_;
  std::vector<Other> others_;
};

Launchers::Launchers(Reservation& reserved, const std::function<void(const std::string&)>& say) {
  if (!reserved.job.meeting) return;
  if (reserved.job.meeting->nodes.size() > 1)
    links_ = std::make_unique<Links>(reserved, say);
  else
    meet(reserved, say);
}

Launchers::~Launchers() = default;

std::vector<int> Launchers::descriptors() const {
  return links_ == nullptr ? std::vector<int>() : links_->descriptors();
}

void Launchers::tend(Clock::time_point now) {
  if (links_ != nullptr) links_->tend(now);
}

const std::optional<Launchers::Failure>& Launchers::failure() const {
  static const std::optional<Failure> kNone;
  return links_ == nullptr ? kNone : links_->failure_;
}

void Launchers::fail(const std::string& text, int code) {
  if (links_ != nullptr) links_->fail(text, code);
}

void Launchers::done() {
  if (done_) return;
  done_ = true;
  if (links_ != nullptr) links_->done();
}

std::vector<std::string> Launchers::take_notes() {
  return links_ == nullptr ? std::vector<std::string>() : std::exchange(links_->notes_, {});
}

std::string Launchers::not_done() const { return links_ == nullptr ? "" : links_->not_done(); }

bool Launchers::all_done() const { return links_ == nullptr ? done_ : links_->end_; }

}  // namespace argosy::launch
