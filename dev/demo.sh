#!/bin/bash
# Trains CTR-DNN on generated clicks with two servers and two workers. In the middle of the training one server
# is killed with -9; the launcher starts it again, and its last lines say what that has cost. Then the saved
# model infers.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly log=build/demo/log
readonly middle='epoch: 0, batch_id: 400,'  # of some 970 batches of each worker

# The process id of a server that runs this folder's program.
server() {
  local process
  for process in /proc/[0-9]*; do
    [[ $(readlink "$process/exe" 2>/dev/null) == "$PWD/build/bin/argosy" ]] || continue
    grep -qz '^TRAINING_ROLE=PSERVER$' "$process/environ" 2>/dev/null || continue
    echo "${process#/proc/}"
    return
  done
}

kill_a_server() {
  until grep -q "$middle" $log/workerlog.0 2>/dev/null; do sleep 0.05; done
  local pid
  pid=$(server)
  echo "demo: kill -9 $pid, a server"
  kill -9 "$pid"
}

run() {
  echo "$*"
  "$@"
}

rm -rf $log
kill_a_server &
trap 'kill $! 2>/dev/null || true' EXIT
run build/bin/fleetrun --server_num=2 --worker_num=2 --max_restart=1 --log_dir=$log \
  build/bin/argosy train -m examples/ctr_demo/config.yaml
run build/bin/argosy infer -m examples/ctr_demo/config.yaml
