"""CTR-DNN on generated clicks, alone or with parameter servers:

  python ctr.py
  fleetrun --server_num=1 --worker_num=1 ctr.py
  fleetrun --server_num=2 --worker_num=4 ctr.py --mode geo
"""

import argparse
import os
import subprocess

import paddle
import paddle.distributed.fleet as fleet

SLOTS = ["C%d" % i for i in range(1, 27)]


def parse_args():
    """What may be chosen."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mode", choices=["sync", "async", "geo"], default="async")
    parser.add_argument("--rows", type=int, default=100000, help="of the training data")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--data", default="ctr_data", help="folder that the data are made in")
    return parser.parse_args()


def make_data(folder, rows):
    """Clicks of Criteo's form with a known best AUC, made once; 8 files, and one to test with."""
    for part, first, count, files in (("train", 0, rows, 8), ("test", rows, rows // 10, 1)):
        if not os.path.isdir(os.path.join(folder, part)):
            subprocess.run(["argosy", "gen", "criteo", "--format", "multislot", "--rows", str(count),
                            "--first-row", str(first), "--files", str(files),
                            "--out", os.path.join(folder, part)], check=True)


def network():
    """(inputs, loss, auc): one table for all slots, four layers."""
    dense = paddle.static.data("dense", [None, 13], "float32")
    slots = [paddle.static.data(name, [None, 1], "int64") for name in SLOTS]
    label = paddle.static.data("label", [None, 1], "int64")
    table = paddle.ParamAttr(name="table", initializer=paddle.nn.initializer.Uniform(-0.01, 0.01))
    rows = [paddle.static.nn.sparse_embedding(one, [1000001, 9], param_attr=table) for one in slots]
    x = paddle.concat([paddle.reshape(one, [-1, 9]) for one in rows] + [dense], axis=1)
    for size in (512, 256, 128, 32):
        x = paddle.static.nn.fc(x, size, activation="relu")
    logits = paddle.static.nn.fc(x, 2)
    loss = paddle.mean(paddle.nn.functional.cross_entropy(logits, label))
    auc = paddle.static.auc(paddle.nn.functional.softmax(logits), label)[0]
    return [dense] + slots + [label], loss, auc


def dataset(inputs, files):
    """Batches of files of MultiSlot lines."""
    data = paddle.distributed.QueueDataset()
    data.init(batch_size=512, thread_num=1, use_var=inputs)
    data.set_filelist(files)
    return data


def train(args, inputs, loss, auc):
    """Each worker trains on its share of the files; the first one tests."""
    folder = os.path.join(args.data, "train")
    files = fleet.util.get_file_shard(sorted(os.path.join(folder, f) for f in os.listdir(folder)
                                             if f.startswith("part")))
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    for epoch in range(args.epochs):
        exe.train_from_dataset(dataset=dataset(inputs, files), fetch_list=[loss, auc],
                               fetch_info=["loss", "auc"])
    fleet.barrier_worker()
    if fleet.is_first_worker():
        test = os.path.join(args.data, "test", "part-0")
        exe.infer_from_dataset(dataset=dataset(inputs, [test]), fetch_list=[auc],
                               fetch_info=["test auc"])
    fleet.stop_worker()


def main():
    """What every process of the job runs."""
    args = parse_args()
    paddle.enable_static()
    fleet.init()
    inputs, loss, auc = network()
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = args.mode != "sync"
    if args.mode == "geo":
        strategy.a_sync_configs = {"k_steps": 100}
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.001), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    if fleet.is_first_worker():
        make_data(args.data, args.rows)
    fleet.barrier_worker()
    train(args, inputs, loss, auc)


if __name__ == "__main__":
    main()
