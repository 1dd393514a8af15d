"""A CTR model that Paddle 2.6.2 trains with its parameter server, and that argosy imports.

usage: python ctr.py record FOLDER    Paddle alone: trains with one server and one worker, and writes to FOLDER
                                      model.pdparams, table/part-*, and what it predicts to predictions.json
       python ctr.py predict MODEL    argosy: what the model of `argosy ckpt import` predicts, as JSON
"""
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import numpy as np
import paddle

SLOTS, DIM, NUMBERS, IDS, BATCH, STEPS = 4, 9, 5, 300, 32, 500
TABLE = "SparseFeatFactors"
SHARDS = 8  # files of the table


def batch(seed):
    """Feeds by name. Ids follow a power law, and every label its first id."""
    random = np.random.RandomState(seed)
    ids = (random.zipf(1.3, (BATCH, SLOTS)) + np.arange(SLOTS) * 7) % IDS
    numbers = random.uniform(0, 1, (BATCH, NUMBERS)).astype("float32")
    clicked = (ids[:, :1] + random.randint(0, 2, (BATCH, 1))) % 3 == 0
    feed = {"C%d" % (i + 1): ids[:, i:i + 1].astype("int64") for i in range(SLOTS)}
    return dict(feed, dense_input=numbers, label=clicked.astype("int64"))


def network():
    """The probabilities of the two classes, and the loss."""
    slots = [paddle.static.data("C%d" % (i + 1), [None, 1], "int64") for i in range(SLOTS)]
    dense = paddle.static.data("dense_input", [None, NUMBERS], "float32")
    label = paddle.static.data("label", [None, 1], "int64")
    rows = [paddle.reshape(paddle.static.nn.sparse_embedding(
        ids, size=[IDS, DIM], param_attr=paddle.ParamAttr(name=TABLE)), [-1, DIM]) for ids in slots]
    x = paddle.concat(rows + [dense], axis=1)
    for size in (16, 8):
        x = paddle.static.nn.fc(x, size, activation="relu")
    predict = paddle.static.nn.fc(x, 2, activation="softmax")
    cost = paddle.nn.functional.cross_entropy(predict, label, use_softmax=False)
    return predict, paddle.mean(cost)


def train(folder):
    """A process of Paddle's job, by its environment."""
    from paddle.distributed import fleet

    fleet.init(fleet.PaddleCloudRoleMaker(is_collective=False))
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = True
    prefix = "table_parameters.%s." % TABLE
    strategy.sparse_table_configs = {TABLE: {prefix + "shard_num": SHARDS, prefix + "accessor.embedx_threshold": 4}}
    predict, loss = network()
    fleet.distributed_optimizer(paddle.optimizer.Adam(0.01, lazy_mode=True), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    fleet.init_worker()
    main = paddle.static.default_main_program()
    for step in range(STEPS):
        exe.run(main, feed=batch(step), fetch_list=[loss])
    fleet.barrier_worker()
    fleet.save_persistables(exe, str(folder / "saved"))
    scope = paddle.static.global_scope()
    names = [p.name for p in main.all_parameters() if p.name != TABLE]
    paddle.save({name: scope.find_var(name).get_tensor() for name in names},
                str(folder / "model.pdparams"))
    # A batch that nobody has seen: computed with what was just saved, before its own push.
    answer, = exe.run(main, feed=batch(STEPS), fetch_list=[predict])
    (folder / "predictions.json").write_text(json.dumps(answer[:, 1].tolist(), indent=1) + "\n")
    fleet.stop_worker()


def record(folder):
    """Starts the two processes of Paddle's job and keeps what they save."""
    with socket.socket() as server, socket.socket() as worker:
        server.bind(("127.0.0.1", 0))
        worker.bind(("127.0.0.1", 0))
        ports = [s.getsockname()[1] for s in (server, worker)]
    env = dict(os.environ, PADDLE_PSERVERS_IP_PORT_LIST="127.0.0.1:%d" % ports[0],
               PADDLE_TRAINER_ENDPOINTS="127.0.0.1:%d" % ports[1], PADDLE_TRAINERS_NUM="1",
               POD_IP="127.0.0.1", PADDLE_TRAINER_ID="0", PADDLE_WITH_GLOO="0")
    command = [sys.executable, __file__, "train", str(folder)]
    server = subprocess.Popen(command, env=dict(env, TRAINING_ROLE="PSERVER", PADDLE_PORT=str(ports[0])))
    try:
        subprocess.run(command, env=dict(env, TRAINING_ROLE="TRAINER", PADDLE_PORT=str(ports[1])), check=True, timeout=120)
    finally:
        server.kill()
    shutil.rmtree(folder / "table", ignore_errors=True)
    (folder / "saved" / "000").rename(folder / "table")  # 001 has the parameters, without their names
    shutil.rmtree(folder / "saved")


def predict(model):
    """Ours: alone, with the imported model."""
    from argosy import static

    answer, loss = network()
    program = paddle.static.default_main_program().clone(for_test=True)
    paddle.optimizer.Adam(0.01).minimize(loss)  # tables are made for training
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    static.load_persistables(exe, model)
    values, = exe.run(program, feed=batch(STEPS), fetch_list=[answer])
    print(json.dumps(values[:, 1].tolist()))


if __name__ == "__main__":
    paddle.enable_static()
    mode, path = sys.argv[1], sys.argv[2]
    {"record": record, "train": train, "predict": predict}[mode](
        path if mode == "predict" else pathlib.Path(path))
