// The only file that knows the YAML library: a YAML text becomes a Setting, and then a Config.
#include "argosy/config/config.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "argosy/config/config_parts.h"

namespace argosy {
namespace {

/// A configuration is written by hand: a larger one is another kind of file, or an attack.
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr size_t kMostLevels = 32;

void check_size(size_t bytes, const std::string& source) {
  check<ConfigError>(bytes <= kMostBytes, source, ": has more than ", kMostBytes,
                     " bytes, expected a configuration");
}

/// Builds the Setting of one document from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  explicit TreeBuilder(std::string source) : source_(std::move(source)) {}

  Setting take() { return std::move(root_); }
  bool empty() const { return root_.kind == Setting::Kind::null; }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add({.kind = Setting::Kind::null, .at = place(mark)});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (awaits_key()) return begin_value(mark, value);
    Place at = place(mark);
    if (tag == "!") ++at.column;  // past the quote
    add({.kind = Setting::Kind::scalar, .text = value, .at = at});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    begin(Setting::Kind::list, mark, tag, anchor, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    begin(Setting::Kind::map, mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    Setting setting;
    std::string name = {};  // of the map's value to come; empty: a key is next
    Place key_at = {};
    bool flow = false;    // written as {a: b}
    bool joined = false;  // the value to come is nothing, its key went into the value before
  };

  Place place(const YAML::Mark& mark) const { return {source_, mark.line + 1, mark.column + 1}; }

  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    check<ConfigError>(anchor == YAML::NullAnchor, place(mark),
                       ": anchors (&x, *x) are not read, write the value out");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    check<ConfigError>(tag.empty() || tag == "?" || tag == "!", place(mark), ": the tag ", tag,
                       " has no meaning here");
  }

  /// Inside {...} YAML takes the comma of {auc: auc(p, label)} for the end of the value.
  static bool in_brackets(const Setting& value) {
    return std::ranges::count(value.text, '(') > std::ranges::count(value.text, ')');
  }

  bool awaits_key() const {
    return !open_.empty() && open_.back().setting.kind == Setting::Kind::map &&
           open_.back().name.empty();
  }

  void begin_value(const YAML::Mark& mark, const std::string& key) {
    Setting& map = open_.back().setting;
    if (open_.back().flow && !map.items.empty() && in_brackets(map.items.back())) {
      map.items.back().text += ", " + key;
      open_.back().name = map.items.back().name;
      open_.back().joined = true;
      return;
    }
    const std::string name = map.name.empty() ? key : map.name + "." + key;
    check<ConfigError>(!key.empty() && key.find('.') == std::string::npos, place(mark), ": '", key,
                       "' is no key: expected a name without dots, parts go below each other");
    if (const Setting* const first = map.find(key))
      fail<ConfigError>(place(mark), ": ", name, " is given twice, first in line ", first->at.line);
    open_.back().name = name;
    open_.back().key_at = place(mark);
  }

  void begin(Setting::Kind kind, const YAML::Mark& mark, const std::string& tag,
             YAML::anchor_t anchor, YAML::EmitterStyle::value style) {
    check<ConfigError>(open_.size() < kMostLevels, place(mark), ": settings are nested more than ",
                       kMostLevels, " levels deep");
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    check<ConfigError>(!awaits_key(), place(mark), ": a key must be a name");
    open_.push_back({.setting = {.kind = kind, .name = next_name(), .at = place(mark)},
                     .flow = style == YAML::EmitterStyle::Flow});
  }

  void end() {
    Setting done = std::move(open_.back().setting);
    open_.pop_back();
    add(std::move(done));
  }

  /// The dotted name of the value that comes next.
  std::string next_name() const {
    if (open_.empty()) return "";
    const Open& parent = open_.back();
    if (parent.setting.kind == Setting::Kind::map) return parent.name;
    return parent.setting.name + "[" + std::to_string(parent.setting.items.size()) + "]";
  }

  void add(Setting setting) {
    check<ConfigError>(!awaits_key(), setting.at, ": a key must be a name");
    setting.name = next_name();
    if (open_.empty()) {
      root_ = std::move(setting);
      return;
    }
    Open& parent = open_.back();
    if (parent.joined) {
      check<ConfigError>(setting.kind == Setting::Kind::null, setting.at, ": ", setting.name,
                         ": a text with commas inside {...} needs quotes");
      parent.joined = false;
      parent.name.clear();
      return;
    }
    // Maps and lists are reported at their key's line, wherever their parts are.
    if (parent.setting.kind == Setting::Kind::map && setting.kind != Setting::Kind::scalar)
      setting.at.line = parent.key_at.line;
    parent.setting.items.push_back(std::move(setting));
    parent.name.clear();
  }

  std::string source_;
  Setting root_;
  std::vector<Open> open_;
};

/// YAML allows no tabs in front of a line, but the library's message about them is of no help.
void refuse_tabs(std::string_view yaml, const std::string& source) {
  for (int line = 1; !yaml.empty(); ++line) {
    const std::string_view text = yaml.substr(0, yaml.find('\n'));
    const auto first = text.find_first_not_of(' ');
    check<ConfigError>(first == std::string_view::npos || text[first] != '\t', source, ":", line,
                       ": a tab in front of the line, expected blanks");
    yaml.remove_prefix(std::min(yaml.size(), text.size() + 1));
  }
}

Setting read_yaml(std::string_view yaml, const std::string& source) {
  check_size(yaml.size(), source);
  refuse_tabs(yaml, source);
  std::istringstream in{std::string(yaml)};
  TreeBuilder tree(source);
  try {
    YAML::Parser parser(in);
    const bool any = parser.HandleNextDocument(tree);
    check<ConfigError>(any && !tree.empty(), source, ": the file holds no settings");
    TreeBuilder rest(source);
    check<ConfigError>(!parser.HandleNextDocument(rest), source,
                       ": holds a second document (---), expected one");
  } catch (const YAML::Exception& e) {
    fail<ConfigError>(source, ":", e.mark.line + 1, ": not YAML: ", e.msg, ", at column ",
                      e.mark.column + 1);
  }
  return tree.take();
}

/// Gives a setting and all below it a name and a place.
void rename(Setting& setting, const std::string& name, const Place& at) {
  setting.name = name;
  setting.at = at;
  for (size_t i = 0; i < setting.items.size(); ++i) {
    Setting& item = setting.items[i];
    rename(item,
           setting.kind == Setting::Kind::map ? name + "." + std::string(item.key())
                                              : name + "[" + std::to_string(i) + "]",
           at);
  }
}

Setting override_value(std::string_view text, const Place& at) {
  if (!text.starts_with('[') && !text.starts_with('{'))
    return {.kind = Setting::Kind::scalar, .text = std::string(text), .at = at};
  return read_yaml(text, at.source);
}

/// Puts the value of "runner.epochs=2" where the file has or could have it.
void apply_override(Setting& root, const std::string& text) {
  check_size(text.size(), "-o " + text.substr(0, text.find('=')));
  const Place at{.source = "-o " + text};
  const auto equals = text.find('=');
  const std::string name = text.substr(0, equals);
  check<ConfigError>(equals != std::string::npos && !name.empty(), at,
                     ": expected KEY=VALUE, as runner.epochs=2");
  Setting* setting = &root;
  for (size_t start = 0; start <= name.size();) {
    const size_t dot = std::min(name.find('.', start), name.size());
    check<ConfigError>(dot > start, at, ": '", name, "' is no key");
    if (setting->kind == Setting::Kind::null) setting->kind = Setting::Kind::map;
    check<ConfigError>(setting->kind == Setting::Kind::map, at, ": ", setting->name,
                       " has a value and no keys below it");
    const std::string key = name.substr(start, dot - start);
    const auto known = std::ranges::find(setting->items, key, &Setting::key);
    if (known == setting->items.end()) {
      setting->items.push_back({.name = name.substr(0, dot), .at = at});
      setting = &setting->items.back();
    } else {
      setting = &*known;
    }
    start = dot + 1;
  }
  *setting = override_value(std::string_view(text).substr(equals + 1), at);
  rename(*setting, name, at);
}

}  // namespace

Config parse_config(std::string_view yaml, const std::string& path,
                    std::span<const std::string> overrides) {
  Setting root = read_yaml(yaml, path);
  check<ConfigError>(root.kind == Setting::Kind::map, path, ":", root.at.line,
                     ": expected keys such as runner: at the start of the line");
  for (const std::string& text : overrides) apply_override(root, text);
  return build_config(root, path);
}

Config load_config(const std::string& path, std::span<const std::string> overrides) {
  std::error_code ignored;
  check<ConfigError>(!std::filesystem::is_directory(path, ignored), path,
                     ": is a folder, expected a YAML file");
  std::ifstream file(path, std::ios::binary);
  check<IoError>(file.is_open(), path, ": cannot be opened");
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  check<IoError>(!file.bad(), path, ": cannot be read");
  text.resize(static_cast<size_t>(file.gcount()));
  return parse_config(text, path, overrides);
}

}  // namespace argosy
