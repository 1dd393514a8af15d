"""Ranks that train together without servers."""

import pathlib
import sys
import textwrap

import pytest

from test_seeds import copy_of, run

STATIC = """
    import sys
    import numpy as np
    import paddle
    import paddle.distributed.fleet as fleet

    paddle.enable_static()
    paddle.seed(5)
    x = paddle.static.data("x", [None, 4], "float32")
    y = paddle.static.data("y", [None, 1], "float32")
    out = paddle.static.nn.fc(paddle.static.nn.fc(x, 8, activation="tanh"), 1)
    loss = paddle.mean(paddle.nn.functional.square_error_cost(out, y))
    strategy = fleet.DistributedStrategy()
    fleet.init(is_collective=True, strategy=strategy)
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    rank, ranks = fleet.worker_index(), fleet.worker_num()
    draw = np.random.RandomState(1)
    for step in range(20):
        data = draw.randn(32, 4).astype("float32")
        mine = data[rank * 32 // ranks:(rank + 1) * 32 // ranks]
        value, = exe.run(feed={"x": mine, "y": mine.sum(1, keepdims=True)}, fetch_list=[loss])
    weight = np.array(paddle.static.global_scope().find_var("fc_0.w_0").get_tensor())
    print("rank", rank, "of", ranks, "weights", " ".join("%.6f" % w for w in weight.ravel()))
"""

DYNAMIC = """
    import numpy as np
    import paddle
    import paddle.distributed as dist
    import paddle.distributed.fleet as fleet

    fleet.init(is_collective=True)
    paddle.seed(dist.get_rank() if dist.get_world_size() > 1 else 0)
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.Tanh(), paddle.nn.Linear(8, 1))
    model = fleet.distributed_model(net)
    adam = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=net.parameters()))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    draw = np.random.RandomState(1)
    for step in range(20):
        data = draw.randn(32, 4).astype("float32")
        mine = paddle.to_tensor(data[rank * 32 // ranks:(rank + 1) * 32 // ranks])
        loss = paddle.nn.functional.mse_loss(model(mine), mine.sum(1, keepdim=True))
        loss.backward()
        adam.step()
        adam.clear_grad()
    print("rank", rank, "of", ranks, "weights", " ".join("%.6f" % w for w in net[0].weight.numpy().ravel()))
"""


def weights(folder: pathlib.Path, script: str, ranks: int) -> list:
    """What each rank ends with."""
    (folder / "train.py").write_text(textwrap.dedent(script))
    if ranks == 1:
        text = run([sys.executable, "train.py"], folder)
    else:
        run(["fleetrun", f"--nproc_per_node={ranks}", "train.py"], folder)
        text = "".join((folder / "log" / f"workerlog.{i}").read_text() for i in range(ranks))
    lines = [line for line in text.splitlines() if line.startswith("rank ")]
    assert len(lines) == ranks, text
    return [[float(word) for word in line.split()[5:]] for line in lines]


@pytest.mark.parametrize("script", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_two_ranks_equal_one_with_the_whole_batch(tmp_path, script):
    alone, = weights(tmp_path, script, 1)
    first, second = weights(tmp_path, script, 2)
    assert first == second
    assert max(abs(a - b) for a, b in zip(alone, first)) < 2e-5


def test_mnist_on_two_ranks_and_on_two_emulated_devices(tmp_path):
    folder = copy_of("002_mnist", tmp_path)
    script = (folder / "train.py").read_text()
    (folder / "train.py").write_text(script.replace("epoch = 10", "epoch = 1"))
    run(["fleetrun", "--gpus=0,1", "train.py"], folder, ARGOSY_EMULATED_DEVICES="2")
    for rank in range(2):
        log = (folder / "log" / f"workerlog.{rank}").read_text()
        assert "epoch: 0, step:200, train_loss: " in log, log


def test_a_strategy_that_is_not_built_is_refused_by_name(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(STATIC).replace(
        "strategy = fleet.DistributedStrategy()",
        "strategy = fleet.DistributedStrategy(); strategy.sharding = True"))
    out = run([sys.executable, "train.py"], tmp_path, expected=1)
    assert "DistributedStrategy.sharding=True is not supported" in out


@pytest.mark.parametrize("setting", ["gradient_merge = True", "fp16_allreduce = True",
                                     "fuse_all_reduce_ops = False", "fuse_grad_size_in_MB = 1"])
def test_strategies_train(tmp_path, setting):
    script = STATIC.replace("strategy = fleet.DistributedStrategy()",
                            f"strategy = fleet.DistributedStrategy(); strategy.{setting}")
    if "merge" in setting:
        script = script.replace("strategy.gradient_merge", "strategy.gradient_merge_configs = "
                                "{'k_steps': 2}; strategy.gradient_merge")
    first, second = weights(tmp_path, script, 2)
    assert first == second
