#!/bin/bash
# Proves that a clone works on a bare Debian 12: makes a chroot with git, make and ca-certificates
# only, clones HEAD into it, runs `make demo` and `make test`, and runs both again to see that a
# second run starts within 5 s. Needs root. apt and pip settings come from this machine.
#
#   dev/test_fresh.sh [--keep] [TARGET...]     --keep leaves the chroot for a look
#                                              TARGETs replace "demo test"
set -euo pipefail

readonly suite=bookworm
readonly bare_packages=git,make,ca-certificates
readonly limit=5  # seconds until a second run does its work

usage() { sed -n '2,7s/^# \{0,1\}//p' "$0"; }

keep=no
targets=()
for arg in "$@"; do
  case $arg in
    --keep) keep=yes ;;
    --help) usage; exit 0 ;;
    -*) usage >&2; exit 2 ;;
    *) targets+=("$arg") ;;
  esac
done
((${#targets[@]})) || targets=(demo test)

say() { echo "fresh: $*"; }
die() { say "$*" >&2; exit 1; }
now() { cut -d ' ' -f 1 /proc/uptime; }  # seconds of a clock that nobody sets
since() { awk -v a="$1" -v b="$(now)" 'BEGIN {printf "%.1f", b - a}'; }

((EUID == 0)) || die "a chroot needs root; run: sudo dev/test_fresh.sh"
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# A mount namespace of our own takes all mounts with it, whatever happens. Not every container
# allows one; the cleanup below unmounts in either case.
if [[ -z ${FRESH_NAMESPACE:-} ]] && unshare --mount true 2>/dev/null; then
  FRESH_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

base=$(mktemp -d "${TMPDIR:-/tmp}/argosy-fresh.XXXXXX")
root=$base/root
mkdir "$root" "$base/settings"
chmod 755 "$base"

mounted_below() { awk -v root="$root/" 'index($5 "/", root) == 1 {print $5}' /proc/self/mountinfo | tac; }

cleanup() {
  local mount
  for mount in $(mounted_below); do umount "$mount" 2>/dev/null || umount --lazy "$mount" || true; done
  if [[ $keep == yes ]]; then
    say "kept: chroot $root"
  elif [[ -n $(mounted_below) ]]; then
    say "left in place, something is still mounted below: $root" >&2
  else
    say "removing $base"
    rm -rf --one-file-system "$base"
  fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# ---- settings of this machine: apt sources and keys, download options, pip, certificates, names

find_sources() {  # the files that list the Debian archive of our suite
  local file
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
    if [[ -f $file ]] && grep -v '^ *#' "$file" | grep -q "$suite" &&
       grep -v '^ *#' "$file" | grep -Eq '://.*/debian(-security)?/?( |$)'; then
      cp "$file" "$base/settings/"
    fi
  done
  [[ -n $(ls "$base/settings") ]] || die "this machine has no apt sources of $suite to take over"
}

# Only what is about downloads: other options name hooks and programs that a bare system has not.
download_options() {
  apt-config dump --format '%F "%v";%n' Acquire | grep -Ev '::(IndexTargets|Changelogs|cdrom)|Auto-Detect| "";$' || true
}

copy_settings() {
  local name
  install -m 644 "$base/download.conf" "$root/etc/apt/apt.conf.d/90host"
  for name in /etc/apt/keyrings /etc/apt/trusted.gpg.d /usr/local/share/ca-certificates; do
    if [[ -d $name ]]; then mkdir -p "$root$name" && cp -aL "$name/." "$root$name/"; fi
  done
  for name in /etc/pip.conf /etc/resolv.conf /etc/hosts; do
    if [[ -f $name ]]; then cat "$name" >"$root$name"; fi
  done
  chroot "$root" update-ca-certificates >/dev/null 2>&1 || say "update-ca-certificates failed, going on"
}

# ---- the chroot

make_root() {
  find_sources
  download_options >"$base/download.conf"
  if command -v mmdebstrap >/dev/null; then
    mmdebstrap --quiet --variant=minbase --include="$bare_packages" --aptopt="$base/download.conf" \
      "$suite" "$root" "$base/settings"/*
    rm -f "$root/etc/apt/apt.conf.d/99mmdebstrap"
    return
  fi
  command -v debootstrap >/dev/null || die "neither mmdebstrap nor debootstrap is here; run: apt-get install mmdebstrap"
  local mirror proxy=
  mirror=$(grep -hv '^ *#' "$base/settings"/* | grep -Eo '[a-z+]+://[^ ]*/debian/?( |$)' | head -n 1)
  eval "$(apt-config shell proxy Acquire::http::Proxy)"
  http_proxy=${proxy:-${http_proxy:-}} debootstrap --variant=minbase --include="$bare_packages" \
    "$suite" "$root" "$mirror" >"$base/debootstrap.log" || { tail -n 20 "$base/debootstrap.log"; exit 1; }
  rm -f "$root/etc/apt/sources.list"
  cp "$base/settings"/*.sources "$root/etc/apt/sources.list.d/" 2>/dev/null || true
  cp "$base/settings"/*.list "$root/etc/apt/sources.list.d/" 2>/dev/null || true
}

mount_kernel_files() {
  mount -t proc proc "$root/proc" 2>/dev/null || mount --rbind /proc "$root/proc" 2>/dev/null ||
    say "may not mount /proc, going on without it"
  if [[ ! -c $root/dev/null ]]; then
    mount --rbind /dev "$root/dev" 2>/dev/null || die "may neither make device files nor mount /dev"
  else
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" 2>/dev/null || chmod 1777 "$root/dev/shm"
  fi
}

# Runs a command in the clone with the environment of a fresh login, plus this machine's proxy and pip settings.
inside() {
  local settings=() name
  for name in $(compgen -e); do
    case $name in
      http_proxy | https_proxy | no_proxy | HTTP_PROXY | HTTPS_PROXY | NO_PROXY | PIP_*) settings+=("$name=${!name}") ;;
    esac
  done
  chroot "$root" env -i -C "${directory:-/argosy}" HOME=/var/tmp USER=root LANG=C.UTF-8 TERM=dumb \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${settings[@]}" "$@"
}

check_bare() {
  local name
  for name in cc gcc g++ clang cmake ninja python3 pip; do
    if directory=/ inside sh -c "command -v $name" >/dev/null; then die "the chroot is not bare: it has $name"; fi
  done
}

# Runs `make TARGET` and prints its output. Leaves in $took its seconds and in $started those until make
# announced the program that the target is about: one of build/bin/ or ctest.
run_target() {
  local begin line status=0
  begin=$(now)
  rm -f "$base/started"
  inside make "$1" 2>&1 | while IFS= read -r line; do
    printf '%s\n' "$line"
    if [[ ! -e $base/started && $line =~ ^(build/bin/|ctest ) ]]; then since "$begin" >"$base/started"; fi
  done || status=$?
  took=$(since "$begin")
  started=$took
  if [[ -e $base/started ]]; then started=$(cat "$base/started"); fi
  return "$status"
}

begin=$(now)
say "making a bare Debian ($suite) in $root"
make_root
copy_settings
mount_kernel_files
check_bare
report=("chroot made in $(since "$begin") s, without compiler, CMake and Python")

if [[ -n $(git -C "$source_dir" status --porcelain) ]]; then say "note: changes not yet committed are not part of this test"; fi
git clone --quiet --depth 1 "file://$source_dir" "$root/argosy"

for target in "${targets[@]}"; do
  say "make $target"
  run_target "$target" || die "make $target failed on a bare system after $(since "$begin") s"
  report+=("make $target: $took s, of which set-up and build $started s")
done
slow=no
for target in "${targets[@]}"; do
  say "make $target, again"
  run_target "$target" || die "make $target failed the second time"
  report+=("make $target again: starts after $started s, ends after $took s")
  if awk -v s="$started" -v limit="$limit" 'BEGIN {exit !(s >= limit)}'; then slow=yes; fi
done

echo
for line in "${report[@]}"; do say "$line"; done
[[ $slow == no ]] || die "a second run takes $limit s or more to start"
say "passed on a bare Debian: make ${targets[*]}; a second run starts within $limit s"
