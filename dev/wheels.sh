#!/bin/bash
# Packs a build folder into wheels: dev/wheels.sh BUILD [FOLDER] writes argosy and argosy-paddle to FOLDER,
# BUILD/wheels if not given.
set -euo pipefail

build=$(cd "${1:?expected the build folder}" && pwd)
wheels=${2:-$build/wheels}
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
python=$(sed -n 's/^Python_EXECUTABLE:[A-Z]*=//p' "$build/CMakeCache.txt")
if [[ -z $python ]]; then
  echo "wheels: $build has no Python package; \`make setup\` says why" >&2
  exit 1
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rm -f "$wheels"/argosy*.whl
pack() {
  "$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    --wheel-dir "$wheels" "$@"
}
settings=()  # by their long name: the pip of Debian 12 knows no other
for setting in cmake.define.ARGOSY_BUILD="$build" build-dir="$work" build.targets=all; do
  settings+=(--config-settings "$setting")
done
pack "$source_dir" "${settings[@]}"
pack "$source_dir/python/paddle_compat"
ls "$wheels"/argosy*.whl
