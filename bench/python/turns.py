"""Rates of the same script on argosy's paddle and on a real one, in turns."""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"


def environment(ours: bool) -> dict:
    """Ours finds the package and the programs of the build folder; both compute with one thread."""
    env = dict(os.environ, OMP_NUM_THREADS="1", ARGOSY_PYTHON=sys.executable)
    env.pop("PYTHONPATH", None)
    if ours:
        env["PYTHONPATH"] = str(BUILD / "python")
        env["PATH"] = os.pathsep.join([str(BUILD / "bin"), os.path.dirname(sys.executable), env["PATH"]])
    return env


def last_number(command, ours: bool, **how) -> float:
    """What a command's last line of output ends with."""
    run = subprocess.run([str(word) for word in command], env=environment(ours), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
    if run.returncode != 0:
        sys.exit(f"{command[0]} ended with {run.returncode}: {run.stderr[-2000:]}")
    return float(run.stdout.split()[-1])


def compare(rounds: int, first, others: dict) -> None:
    """Prints rounds of all in turns, then the medians and those of the ratios as JSON."""
    ours, rates, ratios = [], {name: [] for name in others}, {name: [] for name in others}
    for _ in range(rounds):
        ours.append(first())
        line = f"argosy {ours[-1]:.0f}"
        for name, rate in others.items():
            rates[name].append(rate())
            ratios[name].append(ours[-1] / rates[name][-1])
            line += f"  {name} {rates[name][-1]:.0f} (ratio {ratios[name][-1]:.2f})"
        print(line, flush=True)
    result = {"argosy": round(statistics.median(ours)), "rounds": rounds}
    for name in others:
        result[name] = round(statistics.median(rates[name]))
        result[f"ratio_to_{name}"] = round(statistics.median(ratios[name]), 3)
    print(json.dumps(result))


def paddle_python() -> str:
    """A Python that has Paddle 2.6.2, or nothing: only ours is measured then."""
    python = os.environ.get("PADDLE_PYTHON", "")
    if not python:
        print("without Paddle: set PADDLE_PYTHON to a Python that has paddlepaddle 2.6.2")
    return python
