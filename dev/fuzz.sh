#!/bin/bash
# Runs every libFuzzer program of a folder for some seconds, two at a time: dev/fuzz.sh FOLDER SECONDS
# Inputs that reach something new are kept in FOLDER/corpus; one that crashes is left in FOLDER.
set -euo pipefail
cd "$1"
seconds=$2
failed=0

fuzz() {
  local name=$1
  mkdir -p "corpus/$name"
  if FUZZ_SEEDS="corpus/$name" "./$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -artifact_prefix="$name-" \
       "corpus/$name" >"$name.log" 2>&1; then
    printf '%-22s %s\n' "$name" "$(grep -E '^Done|DONE' "$name.log" | tail -1)"
  else
    printf '%-22s FAILED, the end of %s:\n' "$name" "$name.log"
    tail -30 "$name.log"
    return 1
  fi
}

for program in fuzz_*; do
  [[ -x $program && ! -d $program && $program != *.* ]] || continue
  while (($(jobs -rp | wc -l) >= 2)); do wait -n || failed=1; done
  fuzz "$program" &
done
while (($(jobs -rp | wc -l) > 0)); do wait -n || failed=1; done
exit $failed
