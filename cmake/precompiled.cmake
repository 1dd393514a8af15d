# Headers of others that most files include, parsed once: nearly half of the compiler's time. ccache takes part where
# it is told that a precompiled header stands for what it was made of.
if(CMAKE_CXX_COMPILER_LAUNCHER MATCHES "ccache$")
  list(PREPEND CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros)
  add_compile_options($<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endif()
set(argosy_precompiled
  <algorithm> <array> <chrono> <condition_variable> <fstream> <functional> <map> <memory> <mutex>
  <optional> <ranges> <set> <span> <sstream> <string> <thread> <variant> <vector> <fmt/format.h>)

# Targets that name the same owner are compiled with the same options, and share what it parses: the headers above
# and those given with it.
function(argosy_precompile target owner)
  # g++ 12 forgets which precompiled headers are the system's, and warns of its own bug 105651 there.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${argosy_precompiled} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
