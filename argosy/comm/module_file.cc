#include "argosy/comm/module_file.h"

#include <dlfcn.h>

#include <filesystem>

#include "argosy/base/error.h"
#include "argosy/base/own_folder.h"

namespace argosy::comm {
namespace {

namespace fs = std::filesystem;

/// The folder of the program or the library that this function is a part of.
fs::path folder_of_this_code() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<void*>(&folder_of_this_code), &info) == 0) return {};
  std::error_code error;
  const fs::path file = fs::canonical(info.dli_fname, error);
  // A program may be known by the name it was called with.
  return error ? own_folder() : file.parent_path();
}

const char* remedy(const std::string& name) {
  return name == "mpi" ? "install OpenMPI (Debian: libopenmpi-dev) and build again"
                       : "install the CUDA toolkit and NCCL and build again";
}

}  // namespace

const EngineModule& load_module(const std::string& name) {
  const std::string file = "libargosy_" + name + ".so";
  const fs::path here = folder_of_this_code();
  const fs::path folders[] = {here, here.parent_path() / "lib" / "argosy"};
  for (const fs::path& folder : folders) {
    const std::string path = (folder / file).string();
    if (!fs::exists(path)) continue;
    // MPI loads plug-ins that expect its symbols to be global.
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    check<ConfigError>(library != nullptr, "backend ", name, ": ", ::dlerror(),
                       "; install what is missing");
    const auto* const module =
        static_cast<const EngineModule*>(::dlsym(library, "argosy_engine_module"));
    check<ConfigError>(module != nullptr && module->interface == EngineModule::kInterface,
                       "backend ", name, ": ", path, " is of another version of argosy");
    return *module;
  }
  fail<ConfigError>("backend ", name, ": there is no ", file, " in ", folders[0].string(), " or ",
                    folders[1].string(), "; ", remedy(name));
}

}  // namespace argosy::comm
