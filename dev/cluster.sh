# Sourced by test_slurm.sh and test_mpi.sh: machines of a small cluster as network namespaces, each
# with its own address and name, below namespaces of mounts and processes. All of it is gone with the
# script, however it ends.

name=$(basename "$0" .sh)
name=${name#test_}
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin=$source_dir/build/bin
readonly name source_dir bin

say() { echo "$name: $*"; }
die() { say "$*" >&2; exit 1; }
skip() { say "skipped: $*"; exit 0; }

# enter_cluster GROUP NODES: installs the packages of a group and goes on inside of the cluster, in a
# folder of its own, with `head` and node0, node1, ...
enter_cluster() {
  if [[ -z ${ARGOSY_CLUSTER:-} ]]; then
    "$source_dir/dev/setup.sh" "$1" >/dev/null 2>&1 || skip "its packages cannot be installed here"
    command -v ip >/dev/null || skip "there is no program ip (iproute2)"
    ((EUID == 0)) || skip "network namespaces need root"
    [[ -x $bin/fleetrun && -x $bin/argosy ]] || die "there is no $bin/fleetrun; run: make build"
    unshare --mount --pid --fork true 2>/dev/null || skip "namespaces are not permitted here"
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    code=0
    ARGOSY_CLUSTER=$folder unshare --mount --pid --fork --kill-child --mount-proc \
      --propagation private "$0" || code=$?
    exit $code
  fi
  mount -t tmpfs none /run  # where ip keeps the names of namespaces
  cd "$ARGOSY_CLUSTER"
  make_network "$2" || skip "network namespaces are not permitted here"
  # on MACHINE COMMAND...: there, under that machine's name.
  mkdir bin
  cat >bin/on <<'SCRIPT'
#!/bin/sh
exec nsenter --net="/run/netns/$1" unshare --uts sh -c 'hostname "$0" && exec "$@"' "$@"
SCRIPT
  chmod +x bin/on
  PATH=$PWD/bin:$bin:$PATH
  write_config
}

make_network() {
  local number
  {
    echo "127.0.0.1 localhost"
    echo "10.0.0.254 head"
    for ((number = 0; number < $1; ++number)); do echo "10.0.0.$((number + 1)) node$number"; done
  } >hosts
  mount --bind hosts /etc/hosts
  ip netns add head &&
    ip -n head link add name middle type bridge &&
    ip -n head addr add 10.0.0.254/24 dev middle &&
    ip -n head link set middle up && ip -n head link set lo up || return
  for ((number = 0; number < $1; ++number)); do
    ip netns add "node$number"
    ip -n head link add name "port$number" type veth peer name eth0 netns "node$number"
    ip -n head link set "port$number" master middle up
    ip -n "node$number" addr add "10.0.0.$((number + 1))/24" dev eth0
    ip -n "node$number" link set eth0 up
    ip -n "node$number" link set lo up
  done
}

write_config() {
  cat >config.yaml <<'YAML'
model: dnn
runner:
  train_data_dir: train
  test_data_dir: test
  generate: 'criteo(rows=6000, vocab=50, files=6, seed=3)'
  reader: criteo
  sync_mode: async
  train_batch_size: 50
  epochs: 1
  print_interval: 5
  use_auc: True
  split_file_list: True
  model_save_path: model
hyper_parameters:
  optimizer: {class: Adam, learning_rate: 0.005}
  sparse_feature_number: 100001
  sparse_feature_dim: 4
  fc_sizes: [16, 8]
YAML
}

# run NAME COMMAND...: in a fresh folder NAME, with what it prints in NAME/out; the exit code in $code.
run() {
  start "$@"
  code=0
  wait "$started" || code=$?
}
# The same in the background, as process $started.
start() {
  test=$1
  shift
  rm -rf "$test" && mkdir "$test" && cp config.yaml "$test"
  (cd "$test" && ARGOSY_E2E=$test exec timeout --foreground -k 5 60 "$@") >"$test/out" 2>&1 &
  started=$!
}

failed() {
  say "$test: $*"
  tail -n 60 "$test/out" | sed "s/^/    /"
  exit 1
}
expect_code() { ((code == $1)) || failed "exit code $code, expected $1"; }
expect() { grep -qE -- "$1" "$test"/${2:-out} || failed "${2:-out} does not have: $1"; }
expect_times() { [[ $(cat "$test"/$2 | grep -cE -- "$1") == "$3" ]] || failed "$2 has not $3 times: $1"; }
expect_model() {
  expect 'epoch: 0 done' "$1"
  [[ -d $test/model/0 ]] || failed "there is no model"
}

# Processes of a test that still live; what it has left must be gone within 20 s.
alive() { grep -lazsx "ARGOSY_E2E=$test" /proc/[0-9]*/environ | grep -v "/proc/$$/"; }
expect_nobody() {
  local end=$((SECONDS + 20))
  while [[ -n $(alive) ]]; do
    ((SECONDS < end)) || failed "still alive: $(alive | xargs -n1 dirname | xargs -I{} cat {}/comm | xargs)"
    sleep 0.1
  done
}
# await COMMAND...: until it succeeds.
await() {
  local end=$((SECONDS + 40))
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || failed "waited too long for: $*"
    sleep 0.1
  done
}
passed() { say "passed: $test"; }
