#pragma once

#include <string>
#include <vector>

namespace argosy {

/// A file of a plug-in folder: its name, and the function of that name which it defines.
template <class F>
struct Plugin {
  using Function = F;
  std::string name;
  F* make;
};

template <class F>
std::vector<std::string> names_of(const std::vector<Plugin<F>>& plugins) {
  std::vector<std::string> names;
  names.reserve(plugins.size());
  for (const Plugin<F>& plugin : plugins) names.push_back(plugin.name);
  return names;
}

}  // namespace argosy

// Collects a folder of plug-ins, below an include of its list (cmake/plugins.cmake): each file X.cc
// of the folder defines a function `space`::X of the type that `Kind`, a Plugin, has, and collect()
// returns them all. A file without one is a link error that names it.
#define ARGOSY_COLLECT(space, Kind, collect) \
  namespace space {                          \
  ARGOSY_FILES(ARGOSY_DECLARE_PLUGIN, Kind)  \
  }                                          \
  std::vector<Kind> collect() { return {ARGOSY_FILES(ARGOSY_PLUGIN, space)}; }
#define ARGOSY_DECLARE_PLUGIN(file, Kind) Kind::Function file;
#define ARGOSY_PLUGIN(file, space) {#file, space::file},
