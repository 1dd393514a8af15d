#include "argosy/launch/screen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "argosy/base/error.h"

namespace argosy::launch {
namespace {

constexpr size_t kLongLine = 4096;   // bytes; a longer one is shown before it has ended
constexpr off_t kLastBytes = 16384;  // of a log: where its last lines are looked for

Descriptor open_to_read(const std::string& path) {
  return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

void read_all(int fd, std::string& into) {
  std::array<char, 16384> block;
  while (true) {
    const ssize_t n = ::read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    into.append(block.data(), static_cast<size_t>(n));
  }
}

/// Columns of the terminal; a line that wraps could not be taken back.
size_t width_of(std::FILE* out) {
  winsize size{};
  constexpr size_t kUsual = 80;
  return ::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace

Screen::Screen(std::FILE* out, std::FILE* errors)
    : out_(out), errors_(errors), terminal_(::isatty(::fileno(out)) == 1) {}

void Screen::text(std::string_view lines) {
  if (lines.empty()) return;
  clear();
  std::fwrite(lines.data(), 1, lines.size(), out_);
  draw();
}

void Screen::message(const std::string& line) {
  clear();
  std::fflush(out_);
  fmt::print(errors_, "{}\n", line);
  std::fflush(errors_);
  draw();
}

void Screen::progress(const std::string& line) {
  if (!terminal_) return text(line + "\n");
  clear();
  line_ = line.substr(0, width_of(out_) - 1);
  draw();
}

void Screen::settle() {
  if (line_.empty()) return;
  line_.clear();
  fmt::print(out_, "\n");
  std::fflush(out_);
}

void Screen::clear() {
  if (!line_.empty()) fmt::print(out_, "\r\x1b[K");
}

void Screen::draw() {
  if (!line_.empty()) fmt::print(out_, "{}", line_);
  flush();
}

/// If output fails, as on a full disk, the job goes on and `errors` says so once.
void Screen::flush() {
  if (std::fflush(out_) == 0 || failed_) return;
  failed_ = true;
  fmt::print(errors_, "fleetrun: cannot write to the standard output: {}; the job goes on\n",
             std::strerror(errno));
  std::fflush(errors_);
}

LogTail::LogTail(const std::string& path) : file_(open_to_read(path)) {
  check<IoError>(file_.get() >= 0, "cannot open ", path, ": ", std::strerror(errno));
}

std::string LogTail::read() {
  read_all(file_.get(), waiting_);
  const size_t newline = waiting_.rfind('\n');
  size_t whole = newline == std::string::npos ? 0 : newline + 1;
  if (waiting_.size() - whole > kLongLine) whole = waiting_.size();
  std::string lines = waiting_.substr(0, whole);
  waiting_.erase(0, whole);
  return lines;
}

std::string LogTail::read_rest() {
  std::string lines = read() + waiting_;
  waiting_.clear();
  if (!lines.empty() && lines.back() != '\n') lines += '\n';
  return lines;
}

std::string last_lines(const std::string& path, size_t count, std::string_view indent) {
  const Descriptor file = open_to_read(path);
  if (file.get() < 0) return "";
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  ::lseek(file.get(), std::max<off_t>(0, size - kLastBytes), SEEK_SET);
  std::string content;
  read_all(file.get(), content);
  while (!content.empty() && content.back() == '\n') content.pop_back();
  std::string lines;
  for (size_t found = 0; found < count && !content.empty(); ++found) {
    const size_t newline = content.rfind('\n');
    const size_t begin = newline == std::string::npos ? 0 : newline + 1;
    lines.insert(0, fmt::format("{}{}\n", indent, content.substr(begin)));
    content.resize(newline == std::string::npos ? 0 : newline);
  }
  return lines;
}

}  // namespace argosy::launch
