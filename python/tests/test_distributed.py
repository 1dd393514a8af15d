"""paddle.distributed: calls between ranks, groups, DataParallel and spawn."""

import os
import pathlib
import shutil
import sys
import textwrap

import pytest

import paddle
from test_seeds import run

# Each function is run by three ranks; what it asserts holds on each.
CALLS = """
    import numpy as np
    import paddle
    import paddle.distributed as dist

    def reduces_by_every_operation_and_type():
        for dtype in ("float32", "float64", "int32", "int64"):
            for op, expected in ((dist.ReduceOp.SUM, 9), (dist.ReduceOp.MAX, 4),
                                 (dist.ReduceOp.MIN, 2), (dist.ReduceOp.PROD, 24),
                                 (dist.ReduceOp.AVG, 3)):
                x = paddle.to_tensor(np.full((2, 3), rank + 2), dtype=dtype)
                dist.all_reduce(x, op)
                assert x.dtype == dtype and (x.numpy() == expected).all(), (dtype, op, x)

    def reduces_to_one_rank():
        x = paddle.to_tensor([1.0, 2.0]) * (rank + 1)
        dist.reduce(x, dst=1)
        factor = 6 if rank == 1 else rank + 1
        assert x.tolist() == [factor, 2 * factor]

    def gathers():
        parts = []
        dist.all_gather(parts, paddle.to_tensor([[rank, 10 * rank]]))
        assert [part.tolist() for part in parts] == [[[0, 0]], [[1, 10]], [[2, 20]]]
        whole = paddle.zeros([3, 2], "int64")
        dist.all_gather(whole, paddle.to_tensor([rank, 10 * rank]))
        assert whole.tolist() == [[0, 0], [1, 10], [2, 20]]

    def gathers_objects():
        objects = []
        dist.all_gather_object(objects, {"rank": rank, "text": "x" * (5 * rank)})
        assert [o["rank"] for o in objects] == [0, 1, 2] and objects[2]["text"] == "x" * 10

    def broadcasts():
        x = paddle.to_tensor([rank + 0.5])
        dist.broadcast(x, src=2)
        assert x.item() == 2.5

    def scatters():
        x = paddle.zeros([2], "int32")
        parts = [paddle.full([2], 7 * i, "int32") for i in range(3)] if rank == 1 else None
        dist.scatter(x, parts, src=1)
        assert x.tolist() == [7 * rank] * 2

    def reduces_and_scatters():
        x = paddle.zeros([2])
        dist.reduce_scatter(x, [paddle.full([2], float(rank + i)) for i in range(3)])
        assert x.tolist() == [3.0 + 3 * rank] * 2

    def exchanges_all_to_all():
        out = []
        dist.alltoall([paddle.to_tensor([10 * rank + i]) for i in range(3)], out)
        assert [part.item() for part in out] == [rank, 10 + rank, 20 + rank]

    def sends_and_receives():
        x = paddle.to_tensor([float(rank)])
        if rank == 0:
            dist.send(x, dst=2)
        elif rank == 2:
            dist.recv(x, src=0)
            assert x.item() == 0
        task = dist.isend(x, dst=2) if rank == 1 else dist.irecv(x, src=1) if rank == 2 else None
        if task is not None:
            task.wait()
        assert x.item() == (0, 1, 1)[rank]

    def starts_and_waits():
        x, y = paddle.ones([1000]), paddle.to_tensor([rank])
        tasks = [dist.all_reduce(x, sync_op=False) for _ in range(5)]
        parts = []
        last = dist.all_gather(parts, y, sync_op=False)
        assert not last.is_completed()
        last.wait()
        assert [part.item() for part in parts] == [0, 1, 2]
        assert (x.numpy() == 3.0 ** 5).all()
        dist.all_reduce(y, sync_op=False)
        dist.wait(y)
        assert y.item() == 3
        assert all(task.wait() for task in tasks)

    def makes_groups():
        pair = dist.new_group([2, 0])
        assert dist.get_group(pair.id) is pair and pair.nranks == 2
        assert pair.rank == dist.get_rank(pair) == (0, -1, 1)[rank]
        assert dist.get_world_size(pair) == 2 and dist.get_group().nranks == 3
        x = paddle.to_tensor([rank + 1.0])
        dist.all_reduce(x, group=pair)
        dist.broadcast(x, src=2, group=pair)
        dist.barrier(pair)
        assert x.item() == (4, 2, 4)[rank]

    def knows_its_place():
        env = dist.ParallelEnv()
        assert (env.rank, env.world_size, env.nranks) == (rank, 3, 3)
        assert env.current_endpoint == env.trainer_endpoints[rank]
        assert dist.is_initialized() and dist.is_available()

    def refuses_other_types_and_ranks():
        for call, error, words in (
                (lambda: dist.all_reduce(paddle.ones([2]) > 0), ValueError, "float32, float64"),
                (lambda: dist.all_reduce([1.0]), TypeError, "takes a Tensor"),
                (lambda: dist.broadcast(paddle.ones([2]), src=3), ValueError, "rank 3"),
                (lambda: dist.all_reduce(paddle.ones([2]), op=9), ValueError, "op=9"),
                (lambda: dist.alltoall([paddle.ones([1])] * 2, []), ValueError, "3 ranks")):
            try:
                call()
            except error as e:
                assert words in str(e), e
            else:
                assert False, words
        dist.barrier()

    def utilities_need_no_program():
        import paddle.distributed.fleet as fleet
        fleet.init(is_collective=True)
        assert fleet.util.all_reduce(np.array([rank, 1.0]), "max").tolist() == [2.0, 1.0]
        assert fleet.util.all_gather(rank) == [0, 1, 2]
        fleet.util.barrier()
        fleet.barrier_worker()
        assert dist.get_group(1).nranks == 2, "groups outlive fleet.init"

    dist.init_parallel_env()
    rank = dist.get_rank()
    for name, check in list(globals().items()):
        if callable(check) and getattr(check, "__module__", "") == "__main__":
            check()
            print("done", name, flush=True)
    x = paddle.ones([2 if rank < 2 else 3])
    try:
        dist.all_reduce(x)
    except ValueError as e:
        print("done differing_sizes_are_refused", flush=True)
        print("differing:", e)
"""

NAMES = [line.split("def ")[1].split("(")[0] for line in CALLS.splitlines()
         if line.startswith("    def ")] + ["differing_sizes_are_refused"]


def ranks(folder: pathlib.Path, script: str, number: int, **more) -> list:
    """What each rank of a script prints."""
    (folder / "train.py").write_text(textwrap.dedent(script))
    run(["fleetrun", f"--nproc_per_node={number}", "train.py"], folder, **more)
    return [(folder / "log" / f"workerlog.{i}").read_text() for i in range(number)]


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """What three ranks have done."""
    return ranks(tmp_path_factory.mktemp("calls"), CALLS, 3)


@pytest.mark.parametrize("name", NAMES)
def test_three_ranks(calls, name):
    for log in calls:
        assert f"done {name}\n" in log, log


def test_a_process_alone_is_the_only_rank():
    code = """
        import paddle
        import paddle.distributed as dist
        dist.init_parallel_env()
        x, parts = paddle.to_tensor([3.0]), []
        dist.all_reduce(x)
        dist.all_gather(parts, x)
        print(x.item(), len(parts), dist.get_world_size(), dist.get_rank())
        model = paddle.DataParallel(paddle.nn.Linear(2, 1))
        model(paddle.ones([1, 2])).backward()
        print(model._layers.weight.grad.tolist())
    """
    out = run([sys.executable, "-c", textwrap.dedent(code)], pathlib.Path.cwd())
    assert out.splitlines() == ["3.0 1 1 0", "[[1.0], [1.0]]"]


def test_ranks_have_to_meet_first():
    code = "import paddle; paddle.distributed.all_reduce(paddle.ones([1]))"
    out = run([sys.executable, "-c", code], pathlib.Path.cwd(), expected=1)
    assert "init_parallel_env() or fleet.init(is_collective=True) comes first" in out


# The gradient of a mean over 12 rows, in as many parts as there are ranks.
PARALLEL = """
    import hashlib
    import sys
    import numpy as np
    import paddle
    import paddle.distributed as dist
    import paddle.distributed.fleet as fleet

    parts = {parts}
    strategy = fleet.DistributedStrategy()
    strategy.deterministic = True
    fleet.init(is_collective=True, strategy=strategy)
    ranks, rank = dist.get_world_size(), dist.get_rank()
    paddle.seed(7)

    class Net(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = paddle.nn.Embedding(50, 4, sparse={sparse})
            self.tower = paddle.nn.Sequential(paddle.nn.Linear(8, 16), paddle.nn.Tanh(),
                                              paddle.nn.Linear(16, 1))

        def forward(self, ids):
            return self.tower(paddle.reshape(self.table(ids), [-1, 8]))

    net = Net()
    model = fleet.distributed_model(net)
    adam = fleet.distributed_optimizer(
        paddle.optimizer.Adam(0.01, parameters=net.parameters(), lazy_mode={sparse}))
    draw = np.random.RandomState(3)
    for step in range(12):
        ids = draw.randint(0, 50, (12 * parts, 2))
        y = draw.randn(12 * parts, 1).astype("float32")
        for part in range(parts):
            if ranks > 1 and part != rank:
                continue
            mine = slice(12 * part, 12 * part + 12)
            out = model(paddle.to_tensor(ids[mine]))
            loss = paddle.nn.functional.mse_loss(out, paddle.to_tensor(y[mine]))
            (loss if ranks > 1 else loss * (1.0 / parts)).backward()
        adam.step()
        adam.clear_grad()
    digest = hashlib.sha256()
    for parameter in net.parameters():
        digest.update(parameter.numpy().tobytes())
    print("bits", digest.hexdigest())
"""


@pytest.mark.parametrize("parts, sparse", [(2, False), (4, False), (2, True)])
def test_a_dynamic_graph_has_the_bits_of_one_process_that_accumulates(tmp_path, parts, sparse):
    script = PARALLEL.format(parts=parts, sparse=sparse)
    (tmp_path / "train.py").write_text(textwrap.dedent(script))
    alone = run([sys.executable, "train.py"], tmp_path)
    bits = [line for line in alone.splitlines() if line.startswith("bits")]
    for log in ranks(tmp_path, script, parts):
        assert [line for line in log.splitlines() if line.startswith("bits")] == bits


DATA_PARALLEL = """
    import paddle
    import paddle.distributed as dist

    dist.init_parallel_env()
    rank = dist.get_rank()
    paddle.seed(rank)
    x = paddle.full([1, 2], rank + 1.0)

    net = paddle.nn.Linear(2, 1)
    model = paddle.DataParallel(net)
    first = net.weight.numpy().copy()
    parts = []
    dist.all_gather(parts, net.weight)
    assert parts[0].tolist() == parts[1].tolist(), "the values of rank 0"
    assert set(model.state_dict()) == {"weight", "bias"}

    loss = model(x).sum()
    assert model.scale_loss(loss) is loss
    loss.backward()
    model.apply_collective_grads()
    assert net.weight.grad.tolist() == [[1.5], [1.5]], "the mean when backward() returns"

    net.clear_gradients()
    with model.no_sync():
        model(x).sum().backward()
    assert net.weight.grad.tolist() == [[rank + 1.0]] * 2, "this rank's own"
    model(x).sum().backward()
    assert net.weight.grad.tolist() == [[3.0], [3.0]], "both of both"

    # A plain optimizer steps with the mean too.
    paddle.optimizer.SGD(1.0, parameters=net.parameters()).step()
    assert abs(net.weight.numpy() - (first - 3.0)).max() < 1e-6

    # A backward of something else does not wait for anybody.
    if rank == 0:
        (paddle.create_parameter([1], "float32") * 2).backward()

    class Two(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = (paddle.nn.Linear(2, 1, bias_attr=False) for _ in range(3))

        def forward(self, x):
            return self.a(x) if rank == 0 else self.b(x)

    two = Two()
    model = paddle.DataParallel(two, find_unused_parameters=True)
    model(x).sum().backward()
    assert two.a.weight.grad.tolist() == [[0.5], [0.5]]
    assert two.b.weight.grad.tolist() == [[1.0], [1.0]]
    assert two.c.weight.grad is None
    model = paddle.DataParallel(Two())
    try:
        model(x).sum().backward()
    except ValueError as e:
        print("refused:", e)
    print("all of it")
"""


def test_data_parallel(tmp_path):
    for log in ranks(tmp_path, DATA_PARALLEL, 2):
        assert "all of it" in log, log
        assert "find_unused_parameters=True takes zeros for it" in log, log


def test_gradients_sent_while_backward_runs_are_those_sent_at_its_end(tmp_path):
    script = """
        import sys
        import paddle
        import paddle.distributed as dist

        dist.init_parallel_env()
        paddle.seed(7)
        net = paddle.nn.Sequential(*(paddle.nn.Linear(40, 40) for _ in range(4)))
        model = paddle.DataParallel(net, comm_buffer_size=0.01, last_comm_buffer_size=0.005)
        optimizer = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        paddle.seed(dist.get_rank())
        for _ in range(5):
            loss = (model(paddle.randn([16, 40])) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
        print("sum", [float(p.abs().sum()) for p in net.parameters()])
    """
    sums = set()
    for backend in ("shm", "tcp"):  # ranks that fill a host, and ranks that might be on two
        folder = tmp_path / backend
        folder.mkdir()
        (folder / "train.py").write_text(textwrap.dedent(script))
        run(["fleetrun", "--nproc_per_node=2", f"--backend={backend}", "train.py"], folder)
        for rank in range(2):
            log = (folder / "log" / f"workerlog.{rank}").read_text()
            sums.add(next(line for line in log.splitlines() if line.startswith("sum ")))
    assert len(sums) == 1, sums


def test_a_strategy_for_static_programs_is_refused_by_name(tmp_path):
    script = """
        import paddle
        import paddle.distributed.fleet as fleet

        strategy = fleet.DistributedStrategy()
        strategy.fp16_allreduce = True
        fleet.init(is_collective=True, strategy=strategy)
        try:
            fleet.distributed_model(paddle.nn.Linear(2, 1))
        except ValueError as e:
            print(e)
    """
    for log in ranks(tmp_path, script, 2):
        assert "DistributedStrategy.fp16_allreduce is for static programs" in log


SPAWN = """
    import os
    import sys
    import paddle
    import paddle.distributed as dist

    def train(factor):
        dist.init_parallel_env()
        x = paddle.to_tensor([float(dist.get_rank() + 1)])
        dist.all_reduce(x)
        assert x.item() == 3, x
        if len(sys.argv) > 1 and dist.get_rank() == 1:
            raise KeyError("one of them")
        line = f"rank {dist.get_rank()} of {dist.get_world_size()}: {x.item() * factor}\\n"
        os.write(1, line.encode())  # at once: two processes write here

    if __name__ == "__main__":
        argv = sys.argv
        dist.spawn(train, args=(10,), nprocs=2)
"""


def test_spawn(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent(SPAWN))
    out = run([sys.executable, "train.py"], tmp_path)
    assert sorted(out.splitlines()) == ["rank 0 of 2: 30.0", "rank 1 of 2: 30.0"]


def test_spawn_raises_what_a_rank_raised(tmp_path):
    script = SPAWN.replace("len(sys.argv) > 1 and ", "")
    (tmp_path / "train.py").write_text(textwrap.dedent(script))
    out = run([sys.executable, "train.py"], tmp_path, expected=1)
    assert "spawn: rank 1 of 2 failed:" in out and "KeyError: 'one of them'" in out


@pytest.mark.parametrize("size, batch, shuffle, drop_last", [
    (24, 4, True, False), (25, 4, True, False), (25, 4, False, True), (3, 2, True, False)])
def test_distributed_batches_cover_the_data_once(size, batch, shuffle, drop_last):
    data = list(range(size))

    def parts(epoch: int) -> list:
        samplers = [paddle.io.DistributedBatchSampler(data, batch, num_replicas=3, rank=rank,
                                                      shuffle=shuffle, drop_last=drop_last)
                    for rank in range(3)]
        for sampler in samplers:
            sampler.set_epoch(epoch)
        return [[list(b) for b in sampler] for sampler in samplers]

    first = parts(0)
    assert len({len(part) for part in first}) == 1, "every rank has as many batches"
    seen = [index for part in first for b in part for index in b]
    padding = -(-size // 3) * 3 - size
    if drop_last:
        assert len(seen) == len(set(seen)) and all(len(b) == batch for part in first for b in part)
    else:
        assert sorted(set(seen)) == data and len(seen) == size + padding
    assert parts(0) == first
    assert (parts(1) == first) is not shuffle


def test_a_distributed_sampler_takes_its_rank_from_the_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    sampler = paddle.io.DistributedBatchSampler(list(range(8)), 2)
    assert list(sampler) == [[2, 3], [6, 7]] and len(sampler) == 2
    assert (paddle.distributed.get_rank(), paddle.distributed.get_world_size()) == (1, 2)


CPU = (["--nproc_per_node=2"], "runner.use_gpu=False", {})
CARDS = (["--gpus=0,1"], "runner.use_gpu=True", {"ARGOSY_EMULATED_DEVICES": "2"})


@pytest.mark.skipif("PADDLEREC" not in os.environ, reason="PADDLEREC names no checkout")
@pytest.mark.parametrize("model", ["dnn", "wide_deep"])
@pytest.mark.parametrize("trainer, way", [("trainer", CPU), ("trainer", CARDS),
                                          ("static_trainer", CPU), ("static_trainer", CARDS)],
                         ids=["dynamic", "dynamic_cards", "static", "static_cards"])
def test_paddlerecs_own_trainers_on_two_ranks(tmp_path, model, trainer, way):
    pytest.importorskip("yaml")
    pytest.importorskip("six")
    source = pathlib.Path(os.environ["PADDLEREC"])
    shutil.copytree(source / "tools", tmp_path / "tools")
    folder = tmp_path / "models" / "rank" / model
    shutil.copytree(source / "models" / "rank" / model, folder)
    data = folder / "data" / "sample_data" / "train"
    lines = [line for file in sorted(data.iterdir()) for line in file.read_text().splitlines(True)]
    for file in data.iterdir():
        file.unlink()
    for part in range(2):  # its reader wants a file for each rank
        (data / f"part-{part}").write_text("".join(lines[part::2]))
    flags, device, more = way
    out = run([sys.executable, "-m", "paddle.distributed.launch", *flags,
               f"../../../tools/{trainer}.py", "-m", "config.yaml", "-o", device,
               "runner.use_fleet=True", "runner.epochs=2", "runner.train_batch_size=5"], folder,
              **more)
    for rank in range(2):
        log = (folder / "log" / f"workerlog.{rank}").read_text()
        assert "epoch: 1 done" in log and "auc" in log, out + log
