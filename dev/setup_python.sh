#!/bin/bash
# Prepares the virtual environment that the Python package is built and tested with, and writes the
# options that CMake gets for it: dev/setup_python.sh [--again] BUILD
# PYTHON chooses the interpreter (python3). Without PyPI there is no Python package, which is not an
# error: everything else is built. --again tries even where the last try failed.
set -euo pipefail

again=no
if [[ ${1:-} == --again ]]; then again=yes && shift; fi
build=${1:?expected the build folder}
requirements=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/python/requirements.txt
mkdir -p "$build"
build=$(cd "$build" && pwd)
readonly venv=$build/venv options=$build/python.options log=$build/venv.log
readonly off="setup: building without the Python package (WITH_PYTHON=OFF)"

if ! python=$(command -v "${PYTHON:-python3}"); then
  echo "setup: there is no ${PYTHON:-python3}, expected PYTHON to name an interpreter" >&2
  exit 1
fi
wanted="$("$python" -c 'import sys; print(sys.executable, sys.version.split()[0])')
$(cat "$requirements")"

if [[ -f $options && -f $venv/wanted && $(<"$venv/wanted") == "$wanted" ]]; then
  if grep -q WITH_PYTHON=ON "$options"; then exit 0; fi
  if [[ $again == no ]]; then
    echo "$off: see $log; \`make setup\` tries again"
    exit 0
  fi
fi

write_options() { echo "$1" >"$options.new" && mv "$options.new" "$options"; }

echo "setup: installing python/requirements.txt in $venv"
rm -rf "$venv"
if "$python" -m venv "$venv" >"$log" 2>&1 &&
   "$venv/bin/pip" install --quiet --disable-pip-version-check --retries 2 --timeout 30 \
     -r "$requirements" >>"$log" 2>&1; then
  # What CMake remembers of another interpreter is forgotten.
  echo "setup: $venv is ready after $SECONDS s"
  write_options "-UPython* -U_Python* -Unanobind_DIR -DWITH_PYTHON=ON -DPython_EXECUTABLE=$venv/bin/python"
else
  tail -n 3 "$log" >&2
  echo "$off: the packages of python/requirements.txt cannot be had; \`make setup\` tries again" >&2
  write_options "-DWITH_PYTHON=OFF"
  mkdir -p "$venv"
fi
echo "$wanted" >"$venv/wanted"
