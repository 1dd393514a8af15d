# Ways to move data that need a library of others: a module each, so that programs start without it.
# They lie in lib/argosy beside the folder of the programs, and in the Python package.
function(argosy_module name)
  add_library(argosy_${name} MODULE argosy/comm/modules/${name}.cc)
  add_dependencies(programs argosy_${name})
  target_link_libraries(argosy_${name} PRIVATE argosy_flags ${ARGN})
  set_target_properties(argosy_${name} PROPERTIES CXX_VISIBILITY_PRESET hidden
                        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/argosy)
  install(TARGETS argosy_${name} LIBRARY DESTINATION ${ARGOSY_MODULES} COMPONENT argosy)
  if(WITH_PYTHON)
    file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/python/argosy)
    file(CREATE_LINK ${CMAKE_BINARY_DIR}/lib/argosy/libargosy_${name}.so
         ${CMAKE_BINARY_DIR}/python/argosy/libargosy_${name}.so SYMBOLIC)
    install(TARGETS argosy_${name} LIBRARY DESTINATION ${ARGOSY_PACKAGES}/argosy COMPONENT argosy)
  endif()
endfunction()

find_package(MPI QUIET COMPONENTS CXX)
if(MPI_CXX_FOUND)
  argosy_module(mpi MPI::MPI_CXX)
else()
  message(STATUS "OpenMPI is not found: there is no backend mpi (Debian: libopenmpi-dev)")
endif()

find_package(CUDAToolkit QUIET)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
if(CUDAToolkit_FOUND AND NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
  argosy_module(nccl CUDA::cudart ${NCCL_LIBRARY})
  target_include_directories(argosy_nccl SYSTEM PRIVATE ${NCCL_INCLUDE_DIR})
else()
  message(STATUS "the CUDA toolkit or NCCL is not found: there is no backend nccl")
endif()
