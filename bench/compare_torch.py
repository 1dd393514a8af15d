"""Our training rate against PyTorch's on the same work, in one run: rounds of both in turn, median of the ratios.

usage: ARGOSY_PEERS=VENV python3 bench/compare_torch.py [BATCH [HIDDEN [ROUNDS]]]

VENV is a virtual environment that has torch; without it nothing is compared."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TOOL = HERE.parent / "build" / "bin" / "argosy"


def main():
    batch, hidden, rounds = (int(a) for a in (sys.argv[1:] + ["64", "200", "5"][len(sys.argv) - 1 :])[:3])
    peers = os.environ.get("ARGOSY_PEERS")
    if not peers:
        print("skipped: set ARGOSY_PEERS to a virtual environment that has torch")
        return
    ratios, ours, theirs = [], [], []
    for _ in range(rounds):
        torch = subprocess.run(
            [f"{peers}/bin/python", HERE / "peers" / "torch_mlp.py", str(batch), str(hidden)],
            check=True, capture_output=True, text=True).stdout.split()
        argosy = json.loads(subprocess.run(
            [TOOL, "bench", "train", "--batch", str(batch), "--hidden", str(hidden), "--json"],
            check=True, capture_output=True, text=True).stdout)
        ours.append(argosy["samples_per_second"])
        theirs.append(float(torch[1]))
        ratios.append(ours[-1] / theirs[-1])
        print(f"argosy {ours[-1]:.0f}  torch {torch[0]} {theirs[-1]:.0f}  ratio {ratios[-1]:.2f}", flush=True)
    print(json.dumps({"samples_per_second": statistics.median(ours), "torch_samples_per_second": statistics.median(theirs),
                      "ratio_to_torch": round(statistics.median(ratios), 3), "rounds": rounds}))


main()
