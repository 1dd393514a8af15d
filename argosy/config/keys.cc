#include "argosy/config/keys.h"

#include <filesystem>

namespace argosy::keys_detail {

bool asks_for_nothing(const Setting& setting) {
  if (setting.kind != Setting::Kind::scalar) return setting.items.empty();
  for (const char* nothing : {"", "0", "False", "false", "FALSE"})
    if (setting.text == nothing) return true;
  return false;
}

std::string in_folder(const std::string& folder, const std::string& path) {
  if (path.empty()) return path;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

std::string did_you_mean(std::string_view text, const std::vector<std::string>& choices) {
  const std::string near = nearest(text, choices);
  return near.empty() ? "" : ", did you mean " + near + "?";
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const auto blank = text.find(' ');
    result.emplace_back(text.substr(0, blank));
    text = blank == std::string_view::npos ? "" : text.substr(blank + 1);
  }
  return result;
}

std::string shown(bool value) { return value ? "True" : "False"; }
std::string shown(int64_t value) { return std::to_string(value); }
std::string shown(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}
std::string shown(const std::optional<double>& value) { return value ? shown(*value) : ""; }
std::string shown(const std::string& value) { return value; }
std::string shown(const std::vector<std::string>& value) {
  std::string text;
  for (const std::string& item : value) text += (text.empty() ? "" : ", ") + item;
  return value.empty() ? "" : "[" + text + "]";
}

}  // namespace argosy::keys_detail
