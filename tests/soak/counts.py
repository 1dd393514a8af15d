"""Counts the ids in its files by training, so that every lost or doubled push shows as a whole number.

A row starts at 0 and loses 1 for each id that is read; so does the parameter `all`. Under fleetrun with
servers: kills.py starts it, kills its processes, and counts again without argosy.
"""

import argparse
import os
import time

import numpy as np

import argosy
from argosy import static
from argosy.fleet import DistributedStrategy, Fleet

MODES = {
    "sync": None,
    "async": {},
    "half_async": {"half_async": True},
    "geo": {"k_steps": 4, "geo_scale": "sum"}}


def parse_args() -> argparse.Namespace:
    """What may be chosen."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=list(MODES), default="async")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds between two batches")
    parser.add_argument("--data", default="data", help="folder of files with an id on each line")
    parser.add_argument("--model", default="model", help="folder to save the counts in")
    return parser.parse_args()


def batches(files, size: int):
    """The ids of the files, in their order."""
    for path in files:
        with open(path, encoding="ascii") as lines:
            ids = np.array([int(line) for line in lines], "int64").reshape(-1, 1)
        for at in range(0, len(ids), size):
            yield ids[at:at + size]


def network():
    """Its loss falls by what is counted."""
    ids, ones = static.data("ids", [None, 1], "int64"), static.data("ones", [None, 1])
    zero = argosy.nn.initializer.Constant(0.0)
    row = static.nn.sparse_embedding(ids, [1 << 40, 1],
                                     param_attr=argosy.ParamAttr(name="counts", initializer=zero))
    every = static.nn.fc(ones, 1, weight_attr=argosy.ParamAttr(name="all", initializer=zero),
                         bias_attr=False)
    return argosy.sum(argosy.reshape(row, [-1, 1]) + every)


def main() -> None:
    """What every process of the job runs."""
    args = parse_args()
    argosy.enable_static()
    loss = network()
    strategy = DistributedStrategy()
    strategy.a_sync = args.mode != "sync"
    if MODES[args.mode]:
        strategy.a_sync_configs = MODES[args.mode]
    fleet = Fleet().init()
    # Sync takes the mean of what the workers have.
    rate = float(fleet.worker_num()) if args.mode == "sync" else 1.0
    fleet.distributed_optimizer(argosy.optimizer.SGD(rate), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    fleet.init_worker()
    exe = static.Executor()
    exe.run(static.default_startup_program())
    files = sorted(os.path.join(args.data, name) for name in os.listdir(args.data))
    mine = fleet.util.get_file_shard(files)
    step, pushed = 0, fleet.last_step()
    for _ in range(args.epochs):
        for ids in batches(mine, args.batch):
            exe.run(feed={"ids": ids, "ones": np.ones(ids.shape, "float32")}, fetch_list=[loss])
            step += 1
            if step > pushed:  # those before are not trained again
                time.sleep(args.pause)
    fleet.save_persistables(exe, args.model)
    fleet.stop_worker()


if __name__ == "__main__":
    main()
