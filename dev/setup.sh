#!/bin/bash
# Installs the Debian packages argosy needs, if any is missing: dev/setup.sh GROUP...
# Needs root or sudo only when something is missing; otherwise it says what to run.
set -euo pipefail

declare -A packages=(
  [base]="g++ cmake ninja-build ccache python3 libdnnl-dev libgomp1 libfmt-dev
          libcli11-dev libxxhash-dev zlib1g-dev libzstd-dev libasio-dev
          libyaml-cpp-dev libthrust-dev libgtest-dev"
  [python]="python3-dev python3-venv"
  [format]="clang-format"
  [lint]="clang clang-tidy"
  [fuzz]="clang libclang-rt-14-dev"
  [fresh]="mmdebstrap"
  [slurm]="slurm-wlm munge iproute2"
  [mpi]="openmpi-bin libopenmpi-dev iproute2 procps"
)

wanted=()
for group in "${@:-base}"; do
  if [[ -z ${packages[$group]:-} ]]; then
    echo "setup: no group '$group', only: ${!packages[*]}" >&2
    exit 2
  fi
  read -r -d '' -a names <<<"${packages[$group]}" || true
  wanted+=("${names[@]}")
done

if ! command -v dpkg-query >/dev/null; then
  echo "setup: not a Debian system; these must be there under their names here: ${wanted[*]}" >&2
  exit 0  # CMake names whatever is missing
fi

installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true)
missing=()
for name in "${wanted[@]}"; do
  grep -qxF "installed $name" <<<"$installed" || missing+=("$name")
done
((${#missing[@]})) || exit 0

install=(apt-get install -y --no-install-recommends ca-certificates "${missing[@]}")
if ((EUID == 0)); then
  as_root=()
elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
  as_root=(sudo)
else
  echo "setup: packages are missing and this user may not install them; run as root:" >&2
  echo "  apt-get update && ${install[*]}" >&2
  exit 1
fi

echo "setup: installing ${missing[*]}"
options=(-qq -o Acquire::Retries=3 -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0)
"${as_root[@]}" apt-get "${options[@]}" update ||
  echo "setup: apt-get update failed, trying with the lists at hand" >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${install[@]}" "${options[@]}" >/dev/null
echo "setup: packages installed in $SECONDS s"
