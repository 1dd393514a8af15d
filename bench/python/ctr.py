"""Examples per second of CTR-DNN through argosy's paddle and train_from_dataset, batch 512, one thread: against the C++
program (argosy bench ctr) on the same files, and against Paddle 2.6.2. async: with one server and one worker.

usage: PADDLE_PYTHON=PYTHON build/venv/bin/python bench/python/ctr.py [local|async [ROUNDS [ROWS]]]"""
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from turns import BUILD, compare, environment, last_number, paddle_python

BATCH = 512
WORK = pathlib.Path(__file__).resolve().parent / "ctr_work.py"


def write_files(folder, rows, files=2):
    """MultiSlot lines: 26 ids of a power law, 13 numbers, the label."""
    random = np.random.RandomState(0)
    for number in range(files):
        ids = (random.zipf(1.2, (rows // files, 26)) * 31 + np.arange(26) * 7919) % 1000001
        dense = random.rand(rows // files, 13)
        label = random.rand(rows // files) < 0.25
        with open(folder / f"part-{number}", "w") as out:
            for i in range(rows // files):
                out.write(" ".join(f"1 {id}" for id in ids[i]) + " 13 " +
                          " ".join(f"{value:.4f}" for value in dense[i]) + f" 1 {int(label[i])}\n")


def cpp_rate(data):
    """Of the C++ program, from the same files."""
    out = subprocess.run([BUILD / "bin" / "argosy", "bench", "ctr", "--files", f"{data}/part-*",
                          "--rounds", "1", "--json"], check=True, text=True,
                         stdout=subprocess.PIPE, env=environment(ours=True)).stdout
    return json.loads(out)["files_examples_per_second"]


def with_servers(launcher, data, folder, ours):
    """Of the worker of a job with one server and one worker."""
    command = [*launcher, "--server_num=1", "--worker_num=1", WORK, "async", data, BATCH]
    run = subprocess.run([str(word) for word in command], env=environment(ours), cwd=folder,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if run.returncode != 0:
        sys.exit(f"{launcher[0]} ended with {run.returncode}: {run.stdout[-2000:]}")
    return float((folder / "rate.txt").read_text())


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else "local"
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    rows = int(sys.argv[3]) if len(sys.argv) > 3 else 100000
    peer = paddle_python()
    with tempfile.TemporaryDirectory() as folder:
        data = pathlib.Path(folder)
        write_files(data, rows)
        if mode == "local":
            def rate(python, ours):
                return last_number([python, WORK, "local", data, BATCH], ours, cwd=data)

            others = {"cpp": lambda: cpp_rate(data)}
            if peer:
                others["paddle"] = lambda: rate(peer, ours=False)
            compare(rounds, lambda: rate(sys.executable, ours=True), others)
            return
        launch = [peer, "-m", "paddle.distributed.fleet.launch"]
        others = {"paddle": lambda: with_servers(launch, data, data, ours=False)} if peer else {}
        compare(rounds, lambda: with_servers([BUILD / "bin" / "fleetrun"], data, data, ours=True), others)


main()
