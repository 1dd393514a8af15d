# The folder is the list: argosy_plugins(argosy/ops) writes argosy/ops.def, a macro that names every source file of
# the folder. plugins.cc there includes it and collects them (argosy/base/plugins.h), so a new op is a new file, and a
# file that defines nothing is a link error that names it.
function(argosy_plugins dir)
  argosy_plugin_names(names ${dir})
  argosy_write_plugins(${CMAKE_BINARY_DIR}/generated/${dir}.def ${names})
endfunction()

function(argosy_plugin_names result dir)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
  list(FILTER files EXCLUDE REGEX "(_test|_support|/plugins)\\.cc$")
  set(names "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    list(APPEND names ${name})
  endforeach()
  set(${result} ${names} PARENT_SCOPE)
endfunction()

function(argosy_write_plugins path)
  set(lines "#undef ARGOSY_FILES\n#define ARGOSY_FILES(DO, with)")
  foreach(name IN LISTS ARGN)
    string(APPEND lines " \\\n  DO(${name}, with)")
  endforeach()
  file(CONFIGURE OUTPUT ${path} CONTENT "${lines}\n" @ONLY)
endfunction()
