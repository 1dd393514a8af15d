# Pages of docs/how-to that add a file to a folder of plug-ins are tests: the listing is taken from
# the page and put beside those of the project, by the same list that argosy_plugins writes, and the
# conformance suite runs on it. The program links the library's other parts as they are, so nothing
# but that one file makes the plug-in known.
#
# argosy_how_to(add-an-op FILE softplus FOLDER argosy/ops SOURCES plugins.cc SUITE ops_conformance_test
#               CLAIM Test/softplus)
#   FILE: its name, with which the listing begins. SOURCES: what collects the folder's list. SUITE: the
#   test whose objects are linked, if it is not among the sources. CLAIM: a case that must have run.
function(argosy_how_to page)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FILE;FOLDER;CLAIM;SUITE" "SOURCES")
  set(path docs/how-to/${page}.md)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  file(READ ${path} text)
  if(NOT text MATCHES "```cpp\n(// ${arg_FILE}[^`]*)```")
    message(FATAL_ERROR "${path}: the listing of ${arg_FILE}.cc is gone")
  endif()
  set(how_to ${CMAKE_BINARY_DIR}/how_to/${page})
  file(CONFIGURE OUTPUT ${how_to}/${arg_FILE}.cc CONTENT "${CMAKE_MATCH_1}" @ONLY)
  argosy_plugin_names(names ${arg_FOLDER})
  argosy_write_plugins(${how_to}/${arg_FOLDER}.def ${names} ${arg_FILE})

  string(REPLACE "-" "_" name ${page}_test)
  add_executable(${name} ${how_to}/${arg_FILE}.cc ${arg_SOURCES})
  if(arg_SUITE)
    target_sources(${name} PRIVATE $<TARGET_OBJECTS:${arg_SUITE}>)
  endif()
  set_target_properties(${name} PROPERTIES ARGOSY_LEVEL 0)
  argosy_precompile(${name} base_test)
  target_include_directories(${name} BEFORE PRIVATE ${how_to})
  target_link_libraries(${name} PRIVATE argosy GTest::gtest_main fmt::fmt)
  target_compile_definitions(${name} PRIVATE ARGOSY_SOURCE_DIR="${CMAKE_SOURCE_DIR}" ARGOSY_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  # Not discovered case by case: that would run the whole suite a second time.
  add_test(NAME how_to.${page} COMMAND ${name} --gtest_filter=*${arg_FILE}*)
  set_tests_properties(how_to.${page} PROPERTIES TIMEOUT 120
                       PASS_REGULAR_EXPRESSION "${arg_CLAIM}" FAIL_REGULAR_EXPRESSION "FAILED")
endfunction()

argosy_how_to(add-an-op FILE softplus FOLDER argosy/ops
              SOURCES argosy/ops/plugins.cc SUITE ops_conformance_test
              CLAIM "GradientsMatchFiniteDifferences/softplus")
argosy_how_to(add-a-mode FILE merged_sync FOLDER argosy/modes/communicators
              SOURCES argosy/modes/communicators/plugins.cc SUITE modes_conformance_test
              CLAIM "LoseAndRepeatNothingWhenLinksBreak/merged_sync")
# The suite collects the folder itself, and a kind of its own.
argosy_how_to(add-a-table FILE sorted FOLDER argosy/ps/tables
              SOURCES tests/conformance/tables_conformance_test.cc
              CLAIM "EqualAModelUnderRandomOperations/sorted")
