"""Training rate of a dynamic graph against PyTorch's eager mode: MLP 784-H-H-10, Adam, one thread, data in
memory. Rounds of both in turn, median of the ratios.

usage: ARGOSY_PEERS=VENV PYTHONPATH=build/python python3 bench/python/dynamic_mlp.py [BATCH [HIDDEN [ROUNDS]]]

VENV is a virtual environment that has torch; without it only our own rate is shown."""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve()
SAMPLES = 8192
SECONDS = 3.0


def data():
    """Pixels and classes, the same for both."""
    random = np.random.default_rng(1)
    pixels = random.random((SAMPLES, 784), dtype=np.float32)
    return pixels, random.integers(0, 10, (SAMPLES, 1))


def rate(step, batch):
    """Samples per second of a step on rows [at, at + batch)."""
    steps = SAMPLES // batch
    for i in range(steps):
        step(i * batch)
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        for i in range(steps):
            step(i * batch)
        done += steps * batch
    return done / (time.perf_counter() - start)


def argosy_rate(batch, hidden):
    """Our rate."""
    import argosy
    from argosy import nn, optimizer
    from argosy.nn import functional

    net = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                        nn.Linear(hidden, 10))
    adam = optimizer.Adam(1e-3, parameters=net.parameters())
    pixels, classes = data()

    def step(at):
        x = argosy.to_tensor(pixels[at:at + batch])
        y = argosy.to_tensor(classes[at:at + batch])
        loss = functional.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        adam.clear_grad()

    return rate(step, batch)


def torch_rate(batch, hidden):
    """PyTorch's rate."""
    import torch
    from torch import nn

    torch.set_num_threads(1)
    net = nn.Sequential(nn.Linear(784, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(),
                        nn.Linear(hidden, 10))
    adam = torch.optim.Adam(net.parameters(), 1e-3)
    pixels, classes = data()

    def step(at):
        x = torch.tensor(pixels[at:at + batch])
        y = torch.tensor(classes[at:at + batch, 0])
        loss = nn.functional.cross_entropy(net(x), y)
        adam.zero_grad()
        loss.backward()
        adam.step()

    return rate(step, batch)


def measured(python, which, batch, hidden):
    """The rate of one of the two, in a process of its own."""
    run = subprocess.run([python, HERE, which, str(batch), str(hidden)], check=True,
                         capture_output=True, text=True)
    return float(run.stdout)


def main():
    if len(sys.argv) > 1 and sys.argv[1] in ("argosy", "torch"):
        function = {"argosy": argosy_rate, "torch": torch_rate}[sys.argv[1]]
        print(function(int(sys.argv[2]), int(sys.argv[3])))
        return
    batch, hidden, rounds = (int(a) for a in (sys.argv[1:] + ["64", "200", "5"][len(sys.argv) - 1:])[:3])
    peers = os.environ.get("ARGOSY_PEERS")
    ours, theirs, ratios = [], [], []
    for _ in range(rounds):
        ours.append(measured(sys.executable, "argosy", batch, hidden))
        line = f"argosy {ours[-1]:.0f}"
        if peers:
            theirs.append(measured(f"{peers}/bin/python", "torch", batch, hidden))
            ratios.append(ours[-1] / theirs[-1])
            line += f"  torch {theirs[-1]:.0f}  ratio {ratios[-1]:.2f}"
        print(line, flush=True)
    result = {"samples_per_second": round(statistics.median(ours)), "rounds": rounds}
    if peers:
        result.update(torch_samples_per_second=round(statistics.median(theirs)),
                      ratio_to_torch=round(statistics.median(ratios), 3))
    print(json.dumps(result))


main()
