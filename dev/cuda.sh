#!/bin/bash
# Compiles the device sources with nvcc and checks that each has code for every architecture:
#   dev/cuda.sh BUILD_FOLDER JOBS
set -euo pipefail

folder=$1 jobs=$2
export PATH=$PATH:/usr/local/cuda/bin
nvcc=${CUDACXX:-$(command -v nvcc || true)}
if [[ -z $nvcc ]]; then
  echo "make cuda: there is no nvcc; install the CUDA toolkit 12.4 or newer (developer.nvidia.com/cuda-downloads, packages cuda-nvcc, cuda-cccl, cuda-cudart-dev and libcublas-dev) or name its nvcc by CUDACXX" >&2
  exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
[[ -e $folder/build.ninja ]] ||
  cmake --preset cuda -DCMAKE_CUDA_COMPILER="$nvcc" -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache)" >"$log" ||
  { cat "$log"; exit 1; }
cmake --build "$folder" -j "$jobs" --target argosy_device device_probe
python3 dev/check_cuda.py "$folder/CMakeFiles/argosy_device.dir" sm_80 sm_90 compute_90
"$folder/bin/device_probe"
