#include "argosy/data/source_watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "argosy/base/error.h"

namespace argosy {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;
using std::chrono::milliseconds;

std::string seconds(Reminder::Duration time) {
  return fmt::format("{:.0f} s", std::chrono::duration<double>(time).count());
}

}  // namespace

void SourceWatch::Ring::operator()() const { eventfd_write(event, 1); }

SourceWatch::SourceWatch(std::string source, SourceOptions options, const std::stop_token& stop)
    : source_(std::move(source)),
      options_(std::move(options)),
      stopped_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      stop_(stop),
      callback_(stop, Ring{stopped_.get()}) {}

SourceWatch::~SourceWatch() {
  if (note_.empty()) return;
  note_.clear();
  tell("");
}

bool SourceWatch::wait(std::initializer_list<int> descriptors, milliseconds most,
                       FunctionRef<std::string()> more) {
  check_stop();
  const auto now = Clock::now();
  if (!reminder_) reminder_.emplace(now, options_.patience);
  if (reminder_->due(now)) {
    const std::string why = more();
    note_ = source_ + " gives nothing" + why;
    tell(fmt::format("waits for data: {} has given nothing for {}{}", source_,
                     seconds(now - reminder_->since()), why));
  }
  const auto next = std::chrono::ceil<milliseconds>(reminder_->next() - now);
  std::vector<pollfd> events = {{stopped_.get(), POLLIN, 0}};
  for (const int descriptor : descriptors) events.push_back({descriptor, POLLIN, 0});
  const int ready =
      ::poll(events.data(), events.size(),
             static_cast<int>(std::clamp(std::min(most, next), 0ms, kMoment).count()));
  check_stop();
  return ready > 0;
}

void SourceWatch::gave() {
  const bool told = !std::exchange(note_, "").empty();
  if (told) tell(fmt::format("{} gives data again, after {}", source_, seconds(silence())));
  reminder_.reset();
}

Reminder::Duration SourceWatch::silence() const {
  return reminder_ ? Clock::now() - reminder_->since() : Reminder::Duration::zero();
}

void SourceWatch::check_stop() const {
  check<IoError>(!stop_.stop_requested(), source_, ": stopped");
}

void SourceWatch::warn(const std::string& line) const { tell(line); }

void SourceWatch::tell(const std::string& line) const {
  if (options_.log) return options_.log({source_, line, note_});
  if (!line.empty()) fmt::print(stderr, "argosy: {}\n", line);
}

}  // namespace argosy
