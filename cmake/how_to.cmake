# docs/how-to/add-an-op.md is a test: the file it prints is taken from the page and put beside the ops
# of the project, by the same argosy_plugins, and the conformance suite runs on it. The program links
# the library's other parts as they are, so nothing but that one file makes the op known.
set(page docs/how-to/add-an-op.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${page})
file(READ ${page} text)
if(NOT text MATCHES "```cpp\n(// softplus[^`]*)```")
  message(FATAL_ERROR "${page}: the listing of softplus.cc is gone")
endif()
set(how_to ${CMAKE_BINARY_DIR}/how_to)
file(CONFIGURE OUTPUT ${how_to}/softplus.cc CONTENT "${CMAKE_MATCH_1}" @ONLY)
file(READ ${CMAKE_BINARY_DIR}/generated/argosy/ops.def ops)
file(CONFIGURE OUTPUT ${how_to}/argosy/ops.def CONTENT "${ops}PLUGIN(softplus)\n" @ONLY)

add_executable(how_to_test ${how_to}/softplus.cc argosy/ops/plugins.cc
               tests/conformance/ops_conformance_test.cc)
target_include_directories(how_to_test BEFORE PRIVATE ${how_to})
target_link_libraries(how_to_test PRIVATE argosy GTest::gtest_main fmt::fmt)
set_target_properties(how_to_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
# Not discovered case by case: that would run the whole suite a second time.
add_test(NAME how_to.AddAnOp COMMAND how_to_test --gtest_filter=*softplus*)
set_tests_properties(how_to.AddAnOp PROPERTIES TIMEOUT 120
                     PASS_REGULAR_EXPRESSION "GradientsMatchFiniteDifferences/softplus"
                     FAIL_REGULAR_EXPRESSION "FAILED")
