# The folder is the list: argosy_plugins(argosy/ops) writes argosy/ops.def with a PLUGIN(name) line
# for every source file of the folder. plugins.cc there includes it twice, to declare and to collect,
# so a new op is a new file, and a file that defines nothing is a link error that names it.
function(argosy_plugins dir)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/*.cc)
  list(FILTER files EXCLUDE REGEX "(_test|_support|/plugins)\\.cc$")
  set(lines "")
  foreach(file IN LISTS files)
    cmake_path(GET file STEM name)
    string(APPEND lines "PLUGIN(${name})\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${dir}.def CONTENT "${lines}" @ONLY)
endfunction()
