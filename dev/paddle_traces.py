"""Records what Paddle 2.6.2 computes: the losses of python/tests/traces/models.py, which python.test_traces compares
ours with, and a model of its parameter server (python/tests/paddle_ps/ctr.py), which python.test_paddle_ps imports.

usage: PADDLE_PYTHON dev/paddle_traces.py, with a Python that has paddlepaddle 2.6.2 (make paddle-traces)."""
import importlib.metadata
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACES = ROOT / "python" / "tests" / "traces"
VERSION = "2.6.2"


def main():
    try:
        found = importlib.metadata.version("paddlepaddle")
    except importlib.metadata.PackageNotFoundError:
        found = "none"
    if found != VERSION:
        sys.exit(f"{sys.executable} has paddlepaddle {found}, expected {VERSION}; "
                 "name a Python that has it by PADDLE_PYTHON")
    cases = subprocess.run([sys.executable, TRACES / "models.py"], check=True,
                           stdout=subprocess.PIPE, text=True).stdout.split()
    for case in cases:
        out = subprocess.run([sys.executable, TRACES / "models.py", case], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
        trace = {"command": f"python models.py {case}", "paddle": VERSION, "losses": json.loads(out)}
        (TRACES / f"{case}.json").write_text(json.dumps(trace, indent=1) + "\n")
        print(f"{case}: {trace['losses'][0]:.6f} ... {trace['losses'][-1]:.6f}")
    subprocess.run([sys.executable, ROOT / "python" / "tests" / "paddle_ps" / "ctr.py", "record",
                    ROOT / "tests" / "golden" / "paddle_ps"], check=True, stdout=subprocess.DEVNULL)
    print("paddle_ps: a model of one server and one worker")


main()
