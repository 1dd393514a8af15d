"""Our ranks against PyTorch's data parallel on the same work, in one run: turns of both, median of the ratios.

usage: ARGOSY_PEERS=VENV python3 bench/compare_ddp.py [BATCH [HIDDEN [TURNS [RANKS]]]]

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
    """Prints a line for each turn, then all as JSON."""
    given = [int(a) for a in sys.argv[1:]]
    batch, hidden, turns, ranks = given + [64, 200, 5, 2][len(given):]
    peers = os.environ.get("ARGOSY_PEERS")
    if not peers:
        print("skipped: set ARGOSY_PEERS to a virtual environment that has torch")
        return
    ours, theirs = [], []
    for _ in range(turns):
        torch = subprocess.run(
            [f"{peers}/bin/python", "-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={ranks}",
             HERE / "peers" / "torch_ddp.py", str(batch), str(hidden)],
            check=True, capture_output=True, text=True).stdout.split()
        argosy = json.loads(subprocess.run(
            [TOOL, "bench", "collective", "--ranks", str(ranks), "--batch", str(batch), "--hidden", str(hidden),
             "--turns", "1", "--json"],
            check=True, capture_output=True, text=True).stdout)
        ours.append(argosy["samples_per_second"])
        theirs.append(float(torch[1]))
        print(f"argosy {ours[-1]:.0f}  torch {torch[0]} {theirs[-1]:.0f}  ratio {ours[-1] / theirs[-1]:.2f}", flush=True)
    ratios = [a / b for a, b in zip(ours, theirs)]
    print(json.dumps({"samples_per_second": statistics.median(ours), "torch_samples_per_second": statistics.median(theirs),
                      "ratio_to_torch": round(statistics.median(ratios), 3), "turns": turns}))


main()
