#!/bin/bash
# One part of `make soak`: runs it, and appends what it printed at the end to a report.
#
#   dev/soak.sh PART REPORT     PART: kills, sim, chaos
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

part=${1:-} report=${2:-}
[[ $part && $report ]] || { sed -n '2,5s/^# \?//p' "$0"; exit 2; }
mkdir -p "$(dirname "$report")"

# Seeds of simulated clusters, and processes to kill: SOAK_SEEDS, SOAK_KILLS, SOAK_RANK_KILLS.
readonly seeds=${SOAK_SEEDS:-2000}

sim() {
  ARGOSY_SEEDS=$seeds build/tests/log_test --gtest_filter='LogCrash.*'
  ARGOSY_SEEDS=$seeds build/tests/ps_test --gtest_filter='Journal.LosesNothing*:Journal.Recovers*'
  ARGOSY_SEEDS=$((seeds / 10)) build/tests/job_test --gtest_filter='*SimulatedRestarts*'
}

chaos() {
  ARGOSY_CHAOS_SEED=$(date +%s) ARGOSY_CHAOS_KILLS=${SOAK_KILLS:-100} ARGOSY_CHAOS_JOBS=200 build/tests/chaos_test
  ARGOSY_CHAOS_SEED=$(date +%s) ARGOSY_CHAOS_RANK_KILLS=${SOAK_RANK_KILLS:-50} build/tests/rank_chaos_test
  ARGOSY_CROWD=200 build/tests/crowd_test
  ARGOSY_STRATEGY_EPOCHS=10 build/tests/strategy_accuracy_test
}

kills() {
  local kills=${SOAK_KILLS:-100}
  PATH=$PWD/build/bin:$PATH PYTHONPATH=$PWD/build/python ARGOSY_PYTHON=$PWD/build/venv/bin/python \
    build/venv/bin/python tests/soak/kills.py --servers "$kills" --workers "$kills" --all $((kills / 5))
}

[[ $(type -t "$part") == function ]] || { echo "soak: part '$part', expected kills, sim or chaos"; exit 2; }
output=$(mktemp)
trap 'rm -f "$output"' EXIT
begin=$SECONDS
code=0
"$part" 2>&1 | tee "$output" || code=$?
{
  echo
  echo "## $part, $(date '+%Y-%m-%d %H:%M'), $(git rev-parse --short HEAD), $((SECONDS - begin)) s: $( ((code)) && echo FAILED || echo passed)"
  echo
  grep -E '^(seeds? |\| |[0-9]+ kills|.*(PASSED|FAILED))' "$output" || true
} >>"$report"
echo "soak: $part $( ((code)) && echo failed || echo passed); the report is $report"
exit "$code"
