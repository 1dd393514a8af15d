#include "argosy/launch/status.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "argosy/base/error.h"
#include "argosy/world/processes.h"

namespace argosy::launch {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr auto kPeriod = 500ms;
constexpr std::string_view kFirstLine = "argosy status 1", kFileName = "status.";

double seconds(StatusBoard::Time from, StatusBoard::Time to) {
  return std::max(0.0, std::chrono::duration<double>(to - from).count());
}

/// The fields of one line of a status file.
class Line {
 public:
  Line(std::string_view line, std::string_view kind, std::string where) : where_(std::move(where)) {
    const auto fields = split_fields(line, kind);
    check<DataError>(fields.has_value(), where_, ": expected '", kind, " NAME=VALUE ...'");
    fields_ = *fields;
  }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  std::string text(std::string_view name) const {
    const auto value = unescape(word(name));
    check<DataError>(value.has_value(), where_, ": ", name, " is no text");
    return *value;
  }
  double number(std::string_view name) const {
    constexpr double kMost = 1e12;  // more than any pid or time
    double value = 0;
    const std::string_view text = word(name);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    check<DataError>(whole && value >= 0 && value <= kMost, where_, ": ", name, " is '", text,
                     "', expected a number");
    return value;
  }
  int64_t integer(std::string_view name) const { return static_cast<int64_t>(number(name)); }

 private:
  const std::string_view* find(std::string_view name) const {
    const auto found =
        std::ranges::find(fields_, name, [](const auto& field) { return field.first; });
    return found == fields_.end() ? nullptr : &found->second;
  }
  std::string_view word(std::string_view name) const {
    const std::string_view* const value = find(name);
    check<DataError>(value != nullptr, where_, ": has no ", name);
    return *value;
  }
  std::string where_;
  Fields fields_;
};

std::string format_process(const ProcessRecord& process) {
  std::string text = fmt::format("process name={} pid={} starts={} up={:.1f}", escape(process.name),
                                 process.pid, process.starts, process.up);
  if (process.stopped) text += " stopped=1";
  if (process.ended)
    text += fmt::format(" ended={} ago={:.1f}", escape(process.ended->how), process.ended->seconds);
  if (process.report)
    text += fmt::format(" heard={:.1f}\n{}", process.report->seconds,
                        format_status(process.report->status));
  return text + "\n";
}

ProcessRecord parse_process(const Line& line) {
  ProcessRecord process{.name = line.text("name"),
                        .pid = line.integer("pid"),
                        .starts = line.integer("starts"),
                        .up = line.number("up"),
                        .stopped = line.has("stopped")};
  if (line.has("ended")) process.ended = ProcessRecord::End{line.text("ended"), line.number("ago")};
  return process;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  const bool known = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  return known ? name.data() : "localhost";
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string status_path(const std::string& log_dir, const std::string& host) {
  return fmt::format("{}/{}{}", log_dir, kFileName, host);
}

std::string format_status_file(const StatusFile& file) {
  std::string text =
      fmt::format("{}\nlauncher host={} job={} pid={} started={:.1f} written={:.1f} finished={}\n",
                  kFirstLine, escape(file.host), escape(file.job), file.pid, file.started,
                  file.written, file.finished ? 1 : 0);
  for (const ProcessRecord& process : file.processes) text += format_process(process);
  return text;
}

StatusFile parse_status_file(std::string_view text, const std::string& path) {
  size_t number = 0;
  const auto where = [&] { return fmt::format("{}:{}", path, number); };
  const auto next = [&] {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++number;
    return line;
  };
  const std::string_view first = next();
  check<DataError>(first == kFirstLine, where(), ": is '", first.substr(0, kFirstLine.size()),
                   "', expected '", kFirstLine, "'");
  const std::string_view second = next();
  const Line launcher(second, "launcher", where());
  StatusFile file{.host = launcher.text("host"),
                  .job = launcher.has("job") ? launcher.text("job") : StatusFile().job,
                  .pid = launcher.integer("pid"),
                  .started = launcher.number("started"),
                  .written = launcher.number("written"),
                  .finished = launcher.integer("finished") != 0};
  while (!text.empty()) {
    const std::string_view words = next();
    const Line line(words, "process", where());
    ProcessRecord& process = file.processes.emplace_back(parse_process(line));
    if (!line.has("heard")) continue;
    const auto status = parse_status(next());
    check<DataError>(status.has_value(), where(), ": expected the status of ", process.name);
    process.report = ProcessRecord::Report{*status, line.number("heard")};
  }
  return file;
}

std::vector<StatusFile> read_status_files(const std::string& log_dir) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(log_dir, error))
    if (entry.path().filename().string().starts_with(kFileName)) paths.push_back(entry.path());
  check<IoError>(!error, "cannot read the folder ", log_dir, ": ", error.message(),
                 "; expected the --log_dir of a fleetrun");
  check<IoError>(!paths.empty(), log_dir,
                 " has no status.HOST: expected one that fleetrun with --log_dir ", log_dir,
                 " writes");
  std::ranges::sort(paths);
  std::vector<StatusFile> files;
  for (const std::string& path : paths) {
    std::ifstream in(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    check<IoError>(!in.bad(), "cannot read ", path, ": ", std::strerror(errno));
    files.push_back(parse_status_file(text, path));
  }
  // A file last written before another launcher started belongs to an earlier job.
  const double newest = std::ranges::max(files, {}, &StatusFile::started).started;
  std::erase_if(files, [&](const StatusFile& file) { return file.written < newest; });
  return files;
}

StatusBoard::StatusBoard(const std::string& log_dir, std::string host, std::string job)
    : path_(status_path(log_dir, host)),
      beside_(fmt::format("{}/.status.{}.new", log_dir, host)),
      host_(std::move(host)),
      job_(std::move(job)),
      began_(unix_now()) {}

StatusBoard::Member* StatusBoard::find(std::string_view name) {
  const auto found = std::ranges::find(members_, name, &Member::name);
  return found == members_.end() ? nullptr : &*found;
}

void StatusBoard::started(const std::string& name, int64_t pid, Time now) {
  Member* member = find(name);
  if (member == nullptr) {
    members_.emplace_back().name = name;
    member = &members_.back();
  }
  member->pid = pid;
  ++member->starts;
  member->started = now;
  member->ended.reset();
  member->report.reset();
}

void StatusBoard::take(std::string_view line, Time now) {
  const auto status = parse_status(line);
  if (!status) return;
  Member* const member = find(fmt::format("{} {}", status->role, status->index));
  if (member == nullptr || member->ended) return;
  member->report = Member::Report{*status, now};
}

void StatusBoard::ended(const std::string& name, const std::string& how, Time now) {
  if (Member* const member = find(name)) member->ended = Member::End{how, now};
}

StatusFile StatusBoard::file(Time now) const {
  StatusFile file{.host = host_,
                  .job = job_,
                  .pid = ::getpid(),
                  .started = began_,
                  .written = unix_now(),
                  .finished = finished_};
  for (const Member& member : members_) {
    ProcessRecord& process = file.processes.emplace_back();
    process.name = member.name;
    process.pid = member.pid;
    process.starts = member.starts;
    process.up = seconds(member.started, member.ended ? member.ended->at : now);
    process.stopped = !member.ended && is_stopped(static_cast<pid_t>(member.pid));
    if (member.ended)
      process.ended = ProcessRecord::End{member.ended->how, seconds(member.ended->at, now)};
    if (member.report)
      process.report =
          ProcessRecord::Report{member.report->status, seconds(member.report->at, now)};
  }
  return file;
}

std::optional<std::string> StatusBoard::write_if_due(Time now) {
  if (written_ && now < *written_ + kPeriod) return std::nullopt;
  return write(now);
}

std::optional<std::string> StatusBoard::finish(Time now) {
  finished_ = true;
  return write(now);
}

/// Beside it, then renamed, so that readers see whole files. Not synced: after a crash of the
/// machine it is of no use.
std::optional<std::string> StatusBoard::write(Time now) {
  written_ = now;
  std::error_code error;
  {
    std::ofstream out(beside_, std::ios::binary | std::ios::trunc);
    out << format_status_file(file(now));
    out.flush();
    if (!out) error.assign(errno, std::generic_category());
  }
  if (!error) fs::rename(beside_, path_, error);
  if (!error || std::exchange(failed_, true)) return std::nullopt;
  return fmt::format(
      "cannot write {}: {}; the logs beside it may lose lines, and argosy status "
      "will not see this job",
      path_, error.message());
}

}  // namespace argosy::launch
