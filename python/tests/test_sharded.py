"""Tables whose rows are spread over the ranks."""

import pathlib
import textwrap

import pytest

import paddle.distributed.fleet as fleet
from argosy import _core
from test_seeds import run

SCRIPT = """
    import sys
    import numpy as np
    import paddle
    import paddle.distributed.fleet as fleet

    paddle.enable_static()
    paddle.seed(5)
    ids = paddle.static.data("ids", [None, 1], "int64")
    y = paddle.static.data("y", [None, 1], "float32")
    rows = paddle.static.nn.sparse_embedding(ids, [1000, 4])
    out = paddle.static.nn.fc(paddle.reshape(rows, [-1, 4]), 1)
    loss = paddle.mean(paddle.nn.functional.square_error_cost(out, y))
    strategy = fleet.DistributedStrategy()
    strategy.embedding_mode = sys.argv[1]
    fleet.init(is_collective=True, strategy=strategy)
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    rank, ranks = fleet.worker_index(), fleet.worker_num()
    draw = np.random.RandomState(rank)
    for step in range(20):
        data = draw.randint(0, 50, (16, 1)).astype("int64")
        value, = exe.run(feed={"ids": data, "y": (data % 3).astype("float32")}, fetch_list=[loss])
    fleet.save_persistables(exe, sys.argv[1])
    weight = np.array(paddle.static.global_scope().find_var("fc_0.w_0").get_tensor())
    print("rank", rank, "of", ranks, "weights", " ".join("%.6f" % w for w in weight.ravel()))
"""


def weights(folder: pathlib.Path, mode: str) -> str:
    """What both ranks end with."""
    (folder / "train.py").write_text(textwrap.dedent(SCRIPT))
    run(["fleetrun", "--nproc_per_node=2", "train.py", mode], folder)
    text = "".join((folder / "log" / f"workerlog.{rank}").read_text() for rank in range(2))
    lines = [line for line in text.splitlines() if line.startswith("rank ")]
    assert len(lines) == 2, text
    first, second = (line.split(" weights ")[1] for line in lines)
    assert first == second
    return first


def test_sharded_rows_train_as_replicated_ones(tmp_path):
    assert weights(tmp_path, "sharded") == weights(tmp_path, "replicated")
    assert len(list((tmp_path / "sharded").glob("*.?-of-2.rows"))) == 2
    assert len(list((tmp_path / "replicated").glob("*.rows"))) == 1


def test_another_word_is_refused():
    with pytest.raises(_core.ConfigError, match="embedding_mode is 'split', expected 'replicated'"):
        fleet.DistributedStrategy().embedding_mode = "split"
