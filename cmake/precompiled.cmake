# Headers of others that most files include, parsed once: about a quarter of the compiler's time. A compiler cache,
# where there is one, does better and cannot look into them.
set(argosy_precompiled
  <algorithm> <array> <chrono> <condition_variable> <fstream> <functional> <map> <memory> <mutex>
  <optional> <ranges> <set> <span> <sstream> <string> <thread> <variant> <vector> <fmt/format.h>)

# Targets that name the same owner are compiled with the same options, and share what it parses: the headers above
# and those given with it.
function(argosy_precompile target owner)
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    return()
  endif()
  # g++ 12 forgets which precompiled headers are the system's, and warns of its own bug 105651 there.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-array-bounds>)
  if(target STREQUAL owner)
    target_precompile_headers(${target} PRIVATE ${argosy_precompiled} ${ARGN})
  else()
    target_precompile_headers(${target} REUSE_FROM ${owner})
  endif()
endfunction()
