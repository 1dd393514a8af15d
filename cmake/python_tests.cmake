# Every python/tests/test_*.py is a test by its name, run by pytest against the package of the build folder.
execute_process(COMMAND ${Python_EXECUTABLE} -c "import pytest" RESULT_VARIABLE no_pytest ERROR_QUIET)
if(no_pytest)
  message(STATUS "${Python_EXECUTABLE} has no pytest: the tests of the Python package are left out")
  return()
endif()

file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/pytest)
file(GLOB files CONFIGURE_DEPENDS python/tests/test_*.py)
foreach(file IN LISTS files)
  cmake_path(GET file STEM name)
  add_test(NAME python.${name}
           COMMAND ${Python_EXECUTABLE} -m pytest -q -p no:cacheprovider --basetemp=${CMAKE_BINARY_DIR}/pytest/${name} ${file}
           WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/python)
  # A file is one test, and among the longest: they begin first.
  set_tests_properties(python.${name} PROPERTIES TIMEOUT 900 COST 100
    ENVIRONMENT "PYTHONPATH=${CMAKE_BINARY_DIR}/python;ARGOSY_BIN=${CMAKE_BINARY_DIR}/bin;PYTHONPYCACHEPREFIX=${CMAKE_BINARY_DIR}/pycache"
    ENVIRONMENT_MODIFICATION "PATH=path_list_prepend:${CMAKE_BINARY_DIR}/bin")
endforeach()
