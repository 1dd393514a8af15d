"""Ranks that train together without servers."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

from test_restarts import status_of, wait_for
from test_seeds import PATIENCE, copy_of, environment, run

SOURCE = pathlib.Path(__file__).resolve().parents[2]

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


@pytest.mark.skipif("ARGOSY_DATA" not in os.environ, reason="ARGOSY_DATA names no data")
@pytest.mark.parametrize("flag, devices, said", [
    ("--nproc_per_node=2", "", "this rank was started without a device: it computes on the CPU"),
    ("--gpus=0,1", "2", "ARGOSY_EMULATED_DEVICES=2: devices are emulated")])
def test_mnist_as_printed_on_two_ranks(tmp_path, flag, devices, said):
    folder = copy_of("002_mnist", tmp_path)
    script = (folder / "train.py").read_text()
    (folder / "train.py").write_text(script.replace("epoch = 10", "epoch = 1"))
    run(["fleetrun", flag, "train.py"], folder, ARGOSY_EMULATED_DEVICES=devices)
    for rank in range(2):
        log = (folder / "log" / f"workerlog.{rank}").read_text()
        steps = [line.split(",")[1] for line in log.splitlines()
                 if line.startswith("epoch: 0, step:")]
        assert steps == [f" step:{n}" for n in (200, 400, 600, 800)], log
        assert said in log


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


@pytest.mark.parametrize("tool, graph",
                         [("trainer.py", "dynamic"), ("static_trainer.py", "static")])
def test_the_zoo_is_trained_by_the_lines_of_the_models_document(tmp_path, tool, graph):
    folder = tmp_path / "models" / "rank" / "wide_deep"
    shutil.copytree(SOURCE / "models" / "rank" / "wide_deep", folder,
                    ignore=shutil.ignore_patterns("data", "output*"))
    shutil.copytree(SOURCE / "tools", tmp_path / "tools")
    text = (folder / "config.yaml").read_text()
    text = text.replace("rows=300000", "rows=4000").replace("use_gpu: False",
                                                            "use_gpu: True\n  use_fleet: True")
    (folder / "config.yaml").write_text(text)
    run([sys.executable, "-m", "paddle.distributed.launch", f"../../../tools/{tool}", "-m",
         "config.yaml"], folder, ARGOSY_EMULATED_DEVICES="2")
    for rank in range(2):
        log = (folder / "log" / f"workerlog.{rank}").read_text()
        assert f"rank {rank} of 2 at " in log and "sync_mode collective" in log, log
        assert "data: the files are dealt out to 2 ranks" in log
        assert "epoch: 0, batch_id: 0, loss: " in log and "ins/s" in log and "epoch: 0 done" in log
    first = (folder / "log" / "workerlog.0").read_text()
    assert re.search(rf"runner.graph +{graph}\n", first), first
    assert "emulated" in first or "runner.use_gpu is for graph static" in first


def test_ranks_of_dynamic_graphs_report_their_steps(tmp_path):
    """Rank 1 stands still behind its tenth step, in which the other waits for it: `argosy status` says so."""
    stands = DYNAMIC.replace("        adam.clear_grad()\n", """\
        adam.clear_grad()
        while step == 9 and rank == 1 and not os.path.exists("go"):
            time.sleep(0.01)
""").replace("    import numpy as np\n", "    import os\n    import time\n    import numpy as np\n")
    (tmp_path / "train.py").write_text(textwrap.dedent(stands))
    job = subprocess.Popen(["fleetrun", "--nproc_per_node=2", "train.py"], cwd=tmp_path, env=environment())
    try:
        wait_for(lambda: "for worker 1 (to end step 11)" in status_of(tmp_path))
        assert re.search(r"worker 0 .* 10 of epoch 1", status_of(tmp_path))
        (tmp_path / "go").touch()
        assert job.wait(PATIENCE) == 0
    finally:
        job.kill()
        job.wait()
