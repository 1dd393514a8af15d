#pragma once

#include <string>
#include <vector>

#include "argosy/base/test_support.h"
#include "argosy/log/writer.h"
#include "argosy/world/disk_env.h"

/// What tests of the log share.
namespace argosy {

/// A record as text: its frames, each with its kind.
inline std::string text_of(LogRecord& record) {
  std::string text;
  while (const auto frame = record.next()) {
    text += "[" + std::to_string(frame->kind) + ":";
    text.append(reinterpret_cast<const char*>(frame->payload.data()), frame->payload.size());
    text += "]";
  }
  return text;
}

/// Records by their numbers.
using Records = std::vector<std::pair<uint64_t, std::string>>;

inline Records records_of(Env& env, const std::string& folder = "log",
                          const std::string& identity = "job") {
  Records records;
  read_log(env, folder, identity,
           [&](LogRecord& record) { records.emplace_back(record.number(), text_of(record)); });
  return records;
}

inline std::span<const std::byte> log_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

/// A record of frames whose kinds count from 1.
inline uint64_t write_record(LogWriter& log, const std::vector<std::string>& frames) {
  log.begin_record();
  uint32_t kind = 0;
  for (const std::string& frame : frames) log.add_frame(++kind, log_bytes(frame));
  return log.commit();
}

}  // namespace argosy
