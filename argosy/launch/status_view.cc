#include "argosy/launch/status_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "argosy/base/json.h"

namespace argosy::launch {
namespace {

constexpr size_t kColumns = 8;
using Row = std::array<std::string, kColumns>;
constexpr std::array<const char*, kColumns> kTitles = {
    "process", "pid", "up", "doing", "step", "samples/s", "queue", "staleness"};

/// "4.2 s", "3 min 20 s", "2 h 5 min"
std::string duration_text(double seconds) {
  constexpr double kMinute = 60, kHour = 3600, kShort = 10;
  seconds = std::max(seconds, 0.0);  // clocks of two machines
  const auto whole = static_cast<int64_t>(seconds);
  if (seconds < kShort) return fmt::format("{:.1f} s", seconds);
  if (seconds < kMinute) return fmt::format("{} s", whole);
  if (seconds < kHour) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

bool is_silent(const ProcessRecord& process) { return process.report->seconds > kSilent; }

std::string doing_text(const ProcessRecord& process) {
  if (process.ended)
    return fmt::format("ended {} ago: {}", duration_text(process.ended->seconds),
                       process.ended->how);
  if (process.stopped) return "is stopped";
  if (!process.report) return "has not reported yet";
  if (is_silent(process))
    return fmt::format("has not reported for {}", duration_text(process.report->seconds));
  const ProcessStatus& status = process.report->status;
  std::string text(phrase(status.doing));
  if (status.doing != Doing::serving && status.since >= kLongWait)
    text += " for " + duration_text(status.since);
  if (status.rows) text += fmt::format(", {} rows", *status.rows);
  return text;
}

Row row_of(const ProcessRecord& process) {
  Row row;
  row[0] = process.name;
  row[1] = fmt::format("{}", process.pid);
  row[2] = duration_text(process.up);
  row[3] = doing_text(process);
  if (process.starts > 1) row[3] += fmt::format(" (start {})", process.starts);
  if (!process.report || process.ended) return row;
  const ProcessStatus& status = process.report->status;
  row[4] = status.epoch > 0 ? fmt::format("{} of epoch {}", status.step, status.epoch)
                            : fmt::format("{}", status.step);
  if (is_silent(process)) return row;
  if (status.rate) row[5] = fmt::format("{:.0f}", *status.rate);
  if (status.queue) row[6] = fmt::format("{}", *status.queue);
  if (status.staleness) row[7] = fmt::format("{:.1f}", *status.staleness);
  return row;
}

std::string table_text(const std::vector<Row>& rows) {
  std::array<size_t, kColumns> widths{};
  for (const Row& row : rows)
    for (size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (size_t i = 0; i < kColumns; ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string wait_json(const Wait& wait) {
  return fmt::format(
      "{{\"role\": {}, \"peers\": [{}], \"seconds\": {:.1f}, \"held\": [{}], \"what\": {}}}",
      json_string(wait.role), fmt::join(wait.peers.listed, ", "), wait.seconds,
      fmt::join(wait.held.listed, ", "), json_string(wait.what));
}

std::string process_json(const StatusFile& file, const ProcessRecord& process) {
  std::string text = fmt::format(
      "{{\"name\": {}, \"host\": {}, \"pid\": {}, \"starts\": {}, \"up\": {:.1f}",
      json_string(process.name), json_string(file.host), process.pid, process.starts, process.up);
  if (process.stopped) text += ", \"stopped\": true";
  if (process.ended) text += fmt::format(", \"ended\": {}", json_string(process.ended->how));
  if (process.report) {
    const ProcessStatus& status = process.report->status;
    text += fmt::format(", \"heard\": {:.1f}, \"doing\": {}, \"since\": {:.1f}, \"step\": {}",
                        process.report->seconds, json_string(word(status.doing)), status.since,
                        status.step);
    if (status.epoch > 0) text += fmt::format(", \"epoch\": {}", status.epoch);
    if (status.rate) text += fmt::format(", \"rate\": {:.1f}", *status.rate);
    if (status.queue) text += fmt::format(", \"queue\": {}", *status.queue);
    if (status.staleness) text += fmt::format(", \"staleness\": {:.2f}", *status.staleness);
    if (status.rows) text += fmt::format(", \"rows\": {}", *status.rows);
    if (!status.note.empty()) text += fmt::format(", \"note\": {}", json_string(status.note));
    std::vector<std::string> waits;
    for (const Wait& wait : status.waits) waits.push_back(wait_json(wait));
    text += fmt::format(", \"waits\": [{}]", fmt::join(waits, ", "));
  }
  return text + "}";
}

/// Notes on outside causes of waits that no chain ends with.
std::vector<std::string> other_notes(const std::vector<StatusFile>& files,
                                     const std::vector<std::string>& chains) {
  std::vector<std::string> texts;
  for (const StatusFile& file : files) {
    for (const ProcessRecord& process : file.processes) {
      if (process.ended || !process.report || process.report->status.note.empty()) continue;
      const std::string& note = process.report->status.note;
      const bool told = std::ranges::any_of(chains, [&](const std::string& chain) {
        return chain.find("(" + note + ")") != std::string::npos;
      });
      if (!told) texts.push_back(fmt::format("{} {}: {}", process.name, doing_text(process), note));
    }
  }
  return texts;
}

}  // namespace

std::vector<std::string> launcher_troubles(const std::vector<StatusFile>& files, double now) {
  std::vector<std::string> texts;
  for (const StatusFile& file : files)
    if (!file.finished && now - file.written > kOld)
      texts.push_back(fmt::format("the launcher {} on {} has not written for {}", file.pid,
                                  file.host, duration_text(now - file.written)));
  return texts;
}

std::string status_text(const std::vector<StatusFile>& files, double now) {
  std::vector<Row> rows{Row{}};
  std::ranges::copy(kTitles, rows[0].begin());
  double rate = 0;
  for (const StatusFile& file : files) {
    for (const ProcessRecord& process : file.processes) {
      rows.push_back(row_of(process));
      const bool counts = process.report && !process.ended && !is_silent(process);
      if (counts) rate += process.report->status.rate.value_or(0);
    }
  }
  std::string text;
  if (!files.empty() && files.front().job != StatusFile().job)
    text = fmt::format("job {}\n", files.front().job);
  text += table_text(rows);
  text += fmt::format("all workers: {:.0f} samples/s\n", rate);
  const std::vector<std::string> chains = wait_chains(files);
  for (const std::string& chain : chains) text += "\n" + chain + "\n";
  for (const std::string& note : other_notes(files, chains)) text += "\n" + note + "\n";
  for (const std::string& trouble : launcher_troubles(files, now)) text += "\n" + trouble + "\n";
  if (std::ranges::all_of(files, &StatusFile::finished))
    text +=
        fmt::format("\nthe job has ended, {} ago\n",
                    duration_text(now - std::ranges::max(files, {}, &StatusFile::written).written));
  return text;
}

std::string status_json(const std::vector<StatusFile>& files, double now) {
  std::vector<std::string> processes;
  for (const StatusFile& file : files)
    for (const ProcessRecord& process : file.processes)
      processes.push_back(process_json(file, process));
  const std::string job = files.empty() ? StatusFile().job : files.front().job;
  return fmt::format(
      "{{\"job\": {}, \"ended\": {}, \"processes\": [{}], \"waits\": {}, \"launchers\": {}}}\n",
      json_string(job), std::ranges::all_of(files, &StatusFile::finished),
      fmt::join(processes, ", "), json_list(wait_chains(files)),
      json_list(launcher_troubles(files, now)));
}

}  // namespace argosy::launch
