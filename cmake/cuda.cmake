# WITH_GPU: nvcc compiles the device sources, which are .cc files as all others are.
set(CMAKE_CUDA_ARCHITECTURES "80-real;90" CACHE STRING "Code for compute capability 8.0; code and PTX for 9.0")
set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER} CACHE FILEPATH "")
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)  # CMake 3.25 does not know that nvcc 13 has it
endif()
set(cuda_libraries CUDA::cudart_static CUDA::cublas)

set_source_files_properties(${device_sources} PROPERTIES LANGUAGE CUDA)
set_target_properties(argosy_device PROPERTIES CUDA_ARCHITECTURES "${CMAKE_CUDA_ARCHITECTURES}")

add_library(argosy_cuda_flags INTERFACE)
# Functions that are constexpr (std::array, std::bit_cast, RandomStream) run on devices too; no contraction, as
# on the CPU.
target_compile_options(argosy_cuda_flags INTERFACE --expt-relaxed-constexpr -fmad=false
                       -Xcompiler=-ffp-contract=off)
target_include_directories(argosy_cuda_flags INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
target_link_libraries(argosy_device PRIVATE argosy_cuda_flags CUDA::cudart_static CUDA::cublas)

# A program of its own, small enough to link without the rest: tries the device layer where a device is.
set(layer_sources ${device_sources})
list(FILTER layer_sources INCLUDE REGEX "/argosy/device/")
set(probe tests/cuda/device_probe.cc)
set_source_files_properties(${probe} PROPERTIES LANGUAGE CUDA)
add_executable(device_probe EXCLUDE_FROM_ALL ${probe} ${layer_sources})
target_link_libraries(device_probe PRIVATE argosy_cuda_flags CUDA::cudart_static CUDA::cublas)
