#pragma once

/// Marks a function that also runs on a device: nvcc compiles it for both sides, any other compiler
/// sees a plain function.
#ifdef __CUDACC__
#define ARGOSY_DEVICE __host__ __device__
#else
#define ARGOSY_DEVICE
#endif
