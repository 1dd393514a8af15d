# Installs the programs and the extension of a build folder: a wheel without compiling.
include(cmake/install_folders.cmake)
find_package(Python 3.9 REQUIRED COMPONENTS Interpreter)
execute_process(COMMAND ${Python_EXECUTABLE} -c "import sysconfig; print(sysconfig.get_config_var('EXT_SUFFIX'))"
                OUTPUT_VARIABLE suffix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(extension ${ARGOSY_BUILD}/python/argosy/_core${suffix})
foreach(file ${ARGOSY_BUILD}/bin/argosy ${ARGOSY_BUILD}/bin/fleetrun ${extension})
  if(NOT EXISTS ${file})
    message(FATAL_ERROR "${file} is not built, expected `make build` with this Python")
  endif()
endforeach()
install(PROGRAMS ${ARGOSY_BUILD}/bin/argosy ${ARGOSY_BUILD}/bin/fleetrun DESTINATION ${ARGOSY_PROGRAMS} COMPONENT argosy)
file(GLOB modules ${ARGOSY_BUILD}/lib/argosy/libargosy_*.so)  # as many as could be built
install(PROGRAMS ${modules} DESTINATION ${ARGOSY_MODULES} COMPONENT argosy)
install(PROGRAMS ${modules} DESTINATION ${ARGOSY_PACKAGES}/argosy COMPONENT argosy)
install(DIRECTORY tools models DESTINATION ${ARGOSY_SHARE} COMPONENT argosy ${ARGOSY_LEFT_OUT})
install(DIRECTORY python/argosy DESTINATION ${ARGOSY_PACKAGES} COMPONENT argosy PATTERN __pycache__ EXCLUDE)
install(FILES tools/_argosy.py DESTINATION ${ARGOSY_PACKAGES}/argosy RENAME _programs.py COMPONENT argosy)
install(FILES ${extension} ${ARGOSY_BUILD}/python/argosy/_core.pyi DESTINATION ${ARGOSY_PACKAGES}/argosy COMPONENT argosy)
