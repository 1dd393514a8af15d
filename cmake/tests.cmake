# Every *_test.cc is found by itself: those beside the code make one program per folder, those in
# tests/ one program each.
find_package(GTest REQUIRED)
include(GoogleTest)

function(argosy_test name)
  add_executable(${name} ${ARGN})
  target_link_libraries(${name} PRIVATE argosy GTest::gtest_main fmt::fmt)
  target_compile_definitions(${name} PRIVATE ARGOSY_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ARGOSY_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # What tests call is optimised, they themselves are not worth the compiler's time. Without inlining g++ 12 misreads
  # the operator new that allocations_test has.
  if(NOT name STREQUAL "allocations_test")
    set_target_properties(${name} PROPERTIES ARGOSY_LEVEL 0)
    argosy_precompile(${name} base_test <gtest/gtest.h>)
  endif()
  set(cost 1)
  if("${ARGN}" MATCHES "/tests/e2e/")
    set(cost 50)  # jobs wait more than they compute: they begin first, beside what computes
  endif()
  gtest_discover_tests(${name} TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 COST ${cost})
endfunction()

if(ARGOSY_LAYERS)
  set(layers ${ARGOSY_LAYERS})
else()
  file(GLOB layers RELATIVE ${CMAKE_SOURCE_DIR}/argosy CONFIGURE_DEPENDS argosy/*)
endif()
foreach(layer IN LISTS layers)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS argosy/${layer}/*_test.cc)
  if(files)
    argosy_test(${layer}_test ${files})
    argosy_unity(${layer}_test ${files})
  endif()
endforeach()
if(ARGOSY_LAYERS)
  return()
endif()

file(GLOB_RECURSE files CONFIGURE_DEPENDS tests/*_test.cc)
foreach(file IN LISTS files)
  cmake_path(GET file STEM name)
  if(ARGOSY_SANITIZE AND name STREQUAL "allocations_test")
    continue()  # it counts by an operator new of its own, and so do the sanitizers
  endif()
  if(name STREQUAL "fuzz_smoke_test")
    argosy_test(${name} ${file} tests/fuzz/targets.cc)
    continue()
  endif()
  argosy_test(${name} ${file})
endforeach()

# The loops and oneDNN capped at lesser instruction sets than the machine has.
foreach(isa baseline avx2)
  foreach(program tensor_test graph_test ps_test)
    add_test(NAME isa.${isa}.${program} COMMAND ${program} --gtest_brief=1)
    set_tests_properties(isa.${isa}.${program} PROPERTIES ENVIRONMENT ARGOSY_MAX_ISA=${isa} TIMEOUT 300 COST 50)
  endforeach()
endforeach()

# `argosy bench` becomes a program of its own, with its exit code.
add_test(NAME programs.bench COMMAND argosy_cli bench mlp --batch 8 --rounds 1 --json)
set_tests_properties(programs.bench PROPERTIES PASS_REGULAR_EXPRESSION "{\"bench\": \"mlp\", ")
add_test(NAME programs.bench_unknown COMMAND argosy_cli bench mpl)
set_tests_properties(programs.bench_unknown PROPERTIES WILL_FAIL ON)
