#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "bindings.h"

namespace argosy::python {

using namespace nb::literals;

namespace {

/// A file of Python code as messages call it; it lives for ever, as programs point here.
struct CodeFile {
  std::string name;
  bool ours = false;  // of these packages, not of a script that uses them
};

class CodeFiles {
 public:
  void add_package(std::string folder) {
    packages_.push_back(std::move(folder));
    for (auto& [path, file] : files_) file.ours = ours(path);
  }
  const CodeFile& operator[](const char* path) {
    const auto known = files_.find(path);
    if (known != files_.end()) return known->second;
    return files_.emplace(path, CodeFile{path, ours(path)}).first->second;
  }

 private:
  bool ours(const std::string& path) const {
    return std::ranges::any_of(packages_,
                               [&](const std::string& folder) { return path.starts_with(folder); });
  }
  std::vector<std::string> packages_;
  std::unordered_map<std::string, CodeFile> files_;
};

CodeFiles& code_files() {
  static auto* files = new CodeFiles;
  return *files;
}

Attr attr_of(const std::string& name, nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return int64_t{nb::cast<bool>(value)};
  if (nb::isinstance<nb::int_>(value)) return nb::cast<int64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  if (nb::isinstance<nb::str>(value)) return nb::cast<std::string>(value);
  std::vector<int64_t> integers;
  check<ConfigError>(nb::try_cast(value, integers), "attribute '", name, "' is ",
                     nb::cast<std::string>(nb::repr(value)),
                     ", expected a number, a text or a list of integers");
  return integers;
}

}  // namespace

Attrs attrs_of(const nb::dict& dict) {
  Attrs attrs;
  for (const auto& [key, value] : dict) {
    const auto name = nb::cast<std::string>(key);
    attrs.set(name, attr_of(name, value));
  }
  return attrs;
}

SourceLoc caller() {
  PyFrameObject* frame = PyEval_GetFrame();
  Py_XINCREF(frame);
  SourceLoc at;
  while (frame != nullptr) {
    const nb::object code = nb::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    const nb::object path = code.attr("co_filename");
    const CodeFile& file = code_files()[PyUnicode_AsUTF8(path.ptr())];
    at = {file.name.c_str(), PyFrame_GetLineNumber(frame)};
    PyFrameObject* back = file.ours ? PyFrame_GetBack(frame) : nullptr;
    Py_DECREF(frame);
    frame = back;
  }
  return at;
}

void bind_script(nb::module_& module) {
  module.def(
      "add_package", [](std::string folder) { code_files().add_package(std::move(folder)); },
      "folder"_a, "Lines of code below this folder are not the ones that messages name.");
  module.def(
      "caller",
      [] {
        const SourceLoc at = caller();
        return std::pair<std::string, int>(at.file, at.line);
      },
      "The file and the line of the script that called.");
}

}  // namespace argosy::python
