#include <fmt/format.h>

#include "argosy/base/error.h"
#include "argosy/base/percent.h"
#include "argosy/comm/store.h"

namespace argosy::comm {
namespace {

class FileStore final : public Store {
 public:
  FileStore(Env& env, std::string folder) : env_(env), folder_(std::move(folder)) {
    env_.make_directories(folder_);
  }

  std::optional<std::string> find(const std::string& name) override {
    if (!env_.file_exists(path(name))) return std::nullopt;
    try {
      const std::vector<std::byte> bytes = env_.read_file(path(name));
      return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    } catch (const IoError&) {
      return std::nullopt;  // removed in between
    }
  }
  bool put(const std::string& name, const std::string& text) override {
    // Two processes may write the same one at once, by mistake.
    const std::string fresh = fmt::format("{}.{:016x}", path(name), env_.random());
    const auto file = env_.create_file(fresh);
    file->append(std::as_bytes(std::span(text)));
    file->sync();
    env_.rename_file(fresh, path(name));
    return true;
  }
  void remove(const std::string& name) override { env_.remove_file(path(name)); }
  std::string place() const override { return folder_; }

 private:
  std::string path(const std::string& name) const { return folder_ + "/" + path_part(name); }

  Env& env_;
  const std::string folder_;
};

bool stays(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '-' || c == '_';
}

}  // namespace

std::string path_part(const std::string& text) {
  const std::string part = percent_escape(text, stays);
  // Neither this folder nor the one above.
  return part.starts_with('.') ? "%2E" + part.substr(1) : part;
}

std::unique_ptr<Store> file_store(Env& env, const std::string& folder, const std::string& job) {
  check<ConfigError>(!folder.empty(), "ranks cannot meet in files: the folder has no name");
  return std::make_unique<FileStore>(env, folder + "/" + path_part(job));
}

}  // namespace argosy::comm
