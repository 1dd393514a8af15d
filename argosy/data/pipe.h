#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "argosy/data/byte_stream.h"

namespace argosy {

struct PipeOptions {
  /// For sh -c. A leading `python` means python3 if there is no python; a plain `cat`, Paddle's
  /// default, starts no process: the file is read directly.
  std::string command = {};
  std::string directory = {};  // the child starts there; empty = here
};

/// For messages: "train/part-0 through 'sort -u'".
std::string piped_name(const std::string& path, const std::string& command);

/// The output of `sh -c COMMAND` with the unpacked file on its stdin. The child runs when this
/// returns, or if the file is not a regular one, once it can be read; its process group is killed
/// with the stream, and processes that have left the group end with this process. read() throws
/// IoError with file, exit status or signal and the last lines of stderr if the child fails, and
/// "stopped" once the token says so. A child that gives no data is reported. If it has ended while
/// another process holds its output open, that one is given options.held; later output is not read,
/// and a log line names the process.
std::unique_ptr<ByteStream> open_pipe(const std::string& path, const PipeOptions& options,
                                      const SourceOptions& source = {},
                                      const std::stop_token& stop = {});

/// Pipes of one file after another; the child of the next file starts when the previous pipe is
/// handed out. For one thread.
class PipedFiles {
 public:
  /// next_path returns one file after another, then nothing.
  PipedFiles(std::function<std::optional<std::string>()> next_path, PipeOptions options,
             SourceOptions source = {}, std::stop_token stop = {});
  /// Null at the end.
  std::unique_ptr<ByteStream> next();

 private:
  std::unique_ptr<ByteStream> start();

  std::function<std::optional<std::string>()> next_path_;
  PipeOptions options_;
  SourceOptions source_;
  std::stop_token stop_;
  std::unique_ptr<ByteStream> ahead_;
};

/// The command with a leading word `python` turned into python3.
std::string with_python3(std::string_view command);

}  // namespace argosy
