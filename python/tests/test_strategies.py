"""Fields of DistributedStrategy: each does something, or says that it does not."""

import sys
import textwrap

import pytest

import paddle
from argosy import ConfigError
from argosy.fleet import DistributedStrategy, Fleet
from test_collective import weights
from test_seeds import run

# As Paddle has them, with their defaults.
KNOWN = {
    "a_sync": True, "amp": False, "recompute": False, "localsgd": False, "adaptive_localsgd": False,
    "gradient_merge": False, "dgc": False, "lars": False, "lamb": False, "sharding": False,
    "pipeline": False, "fp16_allreduce": False, "sync_batch_norm": False, "tensor_parallel": False,
    "fuse_all_reduce_ops": True, "fuse_grad_size_in_MB": 32, "fuse_grad_size_in_TFLOPS": 50,
    "last_comm_group_size_MB": 1, "nccl_comm_num": 1, "sync_nccl_allreduce": True,
    "use_hierarchical_allreduce": False, "hierarchical_allreduce_inter_nranks": 1,
    "cudnn_exhaustive_search": True, "conv_workspace_size_limit": 4000,
    "cudnn_batchnorm_spatial_persistent": True, "elastic": False, "auto": False,
    "find_unused_parameters": False, "without_graph_optimization": True, "adam_d2sum": False,
    "is_fl_ps_mode": False, "with_coordinator": False}

BUILT = ("a_sync", "gradient_merge", "lars", "lamb", "fp16_allreduce", "sync_batch_norm",
         "fuse_all_reduce_ops", "fuse_grad_size_in_MB", "use_hierarchical_allreduce",
         "hierarchical_allreduce_inter_nranks", "find_unused_parameters")


@pytest.mark.parametrize("name", KNOWN)
def test_every_field_has_its_default_and_takes_it(name):
    strategy = DistributedStrategy()
    assert getattr(strategy, name) == KNOWN[name]
    setattr(strategy, name, KNOWN[name])


@pytest.mark.parametrize("name", [name for name in KNOWN if name not in BUILT])
def test_a_field_that_is_not_built_is_refused_by_name(name):
    value = not KNOWN[name] if isinstance(KNOWN[name], bool) else KNOWN[name] + 1
    if name.startswith("cudnn_"):
        value = "maybe"  # both defaults, of 2.0 and 2.6, are taken
    with pytest.raises(ConfigError, match=f"DistributedStrategy.{name}={value!r} is not supported"):
        setattr(DistributedStrategy(), name, value)


@pytest.mark.parametrize("name", ["hybrid_configs", "trainer_desc_configs", "fs_client_param"])
def test_configs_that_nothing_reads_are_refused(name):
    with pytest.raises(ConfigError, match=f"DistributedStrategy.{name} is not supported"):
        setattr(DistributedStrategy(), name, {"a": 1})


@pytest.mark.parametrize("scale", [{"scale_strategy": "customized"}, {"scale_gradient": True}])
def test_other_scales_of_gradients_are_refused(scale):
    strategy = DistributedStrategy()
    strategy.gradient_scale_configs = scale
    with pytest.raises(ConfigError, match="expected scale_strategy 'avg' or 'sum'"):
        strategy._of_ranks()


@pytest.mark.parametrize("setting", [
    {"lamb": True}, {"sync_batch_norm": True}, {"fuse_all_reduce_ops": False},
    {"fuse_grad_size_in_MB": 8}, {"gradient_scale_configs": {"scale_strategy": "sum"}}])
def test_a_process_that_is_no_rank_refuses_what_is_for_ranks(setting):
    strategy = DistributedStrategy()
    for name, value in setting.items():
        setattr(strategy, name, value)
    fleet = Fleet()
    fleet.init()
    with pytest.raises(ConfigError, match="is for ranks, which fleet.init"):
        fleet._minimize(None, strategy)


STATIC = """
    import numpy as np
    import paddle
    import paddle.distributed.fleet as fleet

    paddle.enable_static()
    paddle.seed(5)
    x = paddle.static.data("x", [None, 4], "float32")
    y = paddle.static.data("y", [None, 1], "float32")
    hidden = paddle.static.nn.batch_norm(paddle.static.nn.fc(x, 8))
    out = paddle.static.nn.fc(paddle.nn.functional.tanh(hidden), 1)
    loss = paddle.mean(paddle.nn.functional.square_error_cost(out, y))
    strategy = fleet.DistributedStrategy()
    strategy.sync_batch_norm = True
    fleet.init(is_collective=True, strategy=strategy)
    fleet.distributed_optimizer(paddle.optimizer.SGD(0.1)).minimize(loss)
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    rank, ranks = fleet.worker_index(), fleet.worker_num()
    draw = np.random.RandomState(1)
    for step in range(20):
        data = draw.randn(32, 4).astype("float32")
        mine = data[rank * 32 // ranks:(rank + 1) * 32 // ranks]
        exe.run(feed={"x": mine, "y": mine.sum(1, keepdims=True)}, fetch_list=[loss])
    weight = np.array(paddle.static.global_scope().find_var("fc_0.w_0").get_tensor())
    print("rank", rank, "of", ranks, "weights", " ".join("%.6f" % w for w in weight.ravel()))
"""

DYNAMIC = """
    import numpy as np
    import paddle
    import paddle.distributed as dist
    import paddle.distributed.fleet as fleet

    fleet.init(is_collective=True)
    paddle.seed(0)
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 8), paddle.nn.BatchNorm1D(8), paddle.nn.Tanh(),
                               paddle.nn.Linear(8, 1))
    net = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(net[1]) is paddle.nn.SyncBatchNorm
    model = fleet.distributed_model(net)
    sgd = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=net.parameters()))
    rank, ranks = dist.get_rank(), dist.get_world_size()
    draw = np.random.RandomState(1)
    for step in range(20):
        data = draw.randn(32, 4).astype("float32")
        mine = paddle.to_tensor(data[rank * 32 // ranks:(rank + 1) * 32 // ranks])
        loss = paddle.nn.functional.mse_loss(model(mine), mine.sum(1, keepdim=True))
        loss.backward()
        sgd.step()
        sgd.clear_grad()
    values = np.concatenate([net[0].weight.numpy().ravel(), net[1]._variance.numpy()])
    print("rank", rank, "of", ranks, "weights", " ".join("%.6f" % w for w in values))
"""


@pytest.mark.parametrize("script", [STATIC, DYNAMIC], ids=["static", "dynamic"])
def test_sync_batch_norm_makes_two_ranks_one_with_the_whole_batch(tmp_path, script):
    alone, = weights(tmp_path, script, 1)
    first, second = weights(tmp_path, script, 2)
    assert first == second
    assert max(abs(a - b) for a, b in zip(alone, first)) < 2e-5


@pytest.mark.parametrize("script", [
    STATIC.replace("strategy.sync_batch_norm = True", ""),
    DYNAMIC.replace("net = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)", "").replace(
        "assert type", "assert not type")], ids=["static", "dynamic"])
def test_without_it_the_statistics_are_each_rank_s_own(tmp_path, script):
    alone, = weights(tmp_path, script, 1)
    first, _ = weights(tmp_path, script, 2)
    assert max(abs(a - b) for a, b in zip(alone, first)) > 1e-3


def test_a_layer_of_its_own_becomes_a_synced_one():
    norm = paddle.nn.BatchNorm2D(3, momentum=0.7)
    synced = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(norm)
    assert synced.weight is norm.weight and synced._mean is norm._mean
    assert paddle.nn.SyncBatchNorm.convert_sync_batchnorm(synced) is synced
    x = paddle.randn([4, 3, 2, 2])
    assert abs(float(synced(x).mean())) < 1e-5
    act = paddle.nn.Sequential(paddle.nn.BatchNorm(3, act="relu"))
    with pytest.raises(ConfigError, match="act='relu'"):
        paddle.nn.SyncBatchNorm.convert_sync_batchnorm(act)


def test_pairs_that_do_not_go_together_are_refused(tmp_path):
    script = STATIC.replace("strategy.sync_batch_norm = True",
                            "strategy.lars = True; strategy.lamb = True")
    (tmp_path / "train.py").write_text(textwrap.dedent(script))
    out = run([sys.executable, "train.py"], tmp_path, expected=1)
    assert "strategy.lars and strategy.lamb do not go together: each is a rule of its own" in out
