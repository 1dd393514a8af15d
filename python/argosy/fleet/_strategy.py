"""How a program is distributed."""

import difflib
from typing import Any, Dict, List, Sequence

from argosy import _core

_A_SYNC = {"k_steps": -1, "geo_scale": "mean", "half_async": False, "max_merge_var_num": 1,
           "send_queue_size": 16, "independent_recv_thread": False, "min_send_grad_num_before_recv": 1,
           "thread_pool_size": 1, "send_wait_times": 1, "runtime_split_send_recv": False,
           "launch_barrier": True, "heter_worker_device_guard": "cpu", "lr_decay_steps": 10,
           "use_ps_gpu": 0}

# Name: the value that asks for nothing. Anything else is refused until it is built.
_NOT_YET: Dict[str, Any] = {
    "amp": False, "recompute": False, "localsgd": False, "adaptive_localsgd": False, "dgc": False,
    "sharding": False, "pipeline": False, "tensor_parallel": False, "elastic": False,
    "auto": False, "asp": False, "adam_d2sum": False, "is_fl_ps_mode": False,
    "with_coordinator": False, "heter_ccl_mode": False, "qat": False}

# Switches of ranks that train together, and the settings that belong to some.
_SWITCHES = ("gradient_merge", "lars", "lamb", "fp16_allreduce", "sync_batch_norm",
             "use_hierarchical_allreduce")
_FLAGS = ("fuse_all_reduce_ops", "deterministic", "find_unused_parameters")
_CONFIGS: Dict[str, Dict[str, Any]] = {
    "gradient_merge_configs": {"k_steps": 1, "avg": True},
    "lars_configs": {"lars_coeff": 0.001, "lars_weight_decay": 0.0005, "epsilon": 0.0,
                     "exclude_from_weight_decay": []},
    "lamb_configs": {"lamb_weight_decay": 0.01, "exclude_from_weight_decay": []},
    "gradient_scale_configs": {"scale_strategy": "avg", "scale_gradient": False}}

# Of libraries that are not used here. Their defaults may be said, of Paddle 2.0 or of 2.6; another
# value would be ignored and is refused.
_DEFAULTS: Dict[str, Sequence[Any]] = {
    "fuse_grad_size_in_TFLOPS": (50,), "last_comm_group_size_MB": (1,), "nccl_comm_num": (1,),
    "sync_nccl_allreduce": (True,), "without_graph_optimization": (True,),
    "cudnn_exhaustive_search": (True, False), "conv_workspace_size_limit": (4000, 512),
    "cudnn_batchnorm_spatial_persistent": (True, False)}

# Configs of switches that are not there: they may be said as long as the switch is off.
_CONFIGS_NOT_YET = (
    "amp_configs", "recompute_configs", "localsgd_configs", "adaptive_localsgd_configs",
    "dgc_configs", "sharding_configs", "pipeline_configs", "tensor_parallel_configs",
    "qat_configs")
_OTHERS_NOT_YET = ("hybrid_configs", "trainer_desc_configs", "fs_client_param",
                   "sparse_table_configs", "fleet_desc_configs")

# Of no effect in any setting: they ask other engines to make what ours makes by itself.
_ENGINE = ("build_strategy", "execution_strategy")


def _nearest(name: str, known: Any) -> str:
    near = difflib.get_close_matches(name, list(known))
    return f", did you mean {' or '.join(near)}?" if near else ""


class DistributedStrategy:
    """With servers: a_sync False for sync, True for async, a_sync_configs k_steps above 0 for geo.
    Of ranks without servers: gradient_merge, lars, lamb, fp16_allreduce, fuse_all_reduce_ops,
    fuse_grad_size_in_MB, gradient_scale_configs, sync_batch_norm, use_hierarchical_allreduce,
    embedding_mode ("replicated", or "sharded": each rank has a part of every table),
    find_unused_parameters (of dynamic graphs), and deterministic: the bits of one process that
    accumulates the batches of all ranks. With both, memory_limit: bytes ("2G") that the rows of
    all tables may take in each process that has them; the rest is on its disk."""

    def __init__(self) -> None:
        fields = self.__dict__
        fields["a_sync"] = True
        fields["_a_sync_set"] = False
        fields["a_sync_configs"] = dict(_A_SYNC)
        fields.update({name: False for name in _SWITCHES})
        fields.update({name: dict(configs) for name, configs in _CONFIGS.items()})
        fields["embedding_mode"] = "replicated"
        fields["memory_limit"] = ""
        fields["fuse_all_reduce_ops"] = True
        fields["fuse_grad_size_in_MB"] = 32
        fields["_bucket_set"] = False
        fields["hierarchical_allreduce_inter_nranks"] = 1
        fields["deterministic"] = fields["find_unused_parameters"] = False
        fields.update(_NOT_YET)
        fields.update({name: defaults[0] for name, defaults in _DEFAULTS.items()})

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "a_sync":
            self.__dict__.update(a_sync=bool(value), _a_sync_set=True)
            self.a_sync_configs["k_steps"] = 0
        elif name == "a_sync_configs":
            self._set_a_sync_configs(value)
        elif name in _CONFIGS:
            self._set_configs(name, value)
        elif name in _SWITCHES or name in _FLAGS:
            self.__dict__[name] = bool(value)
        elif name == "embedding_mode":
            if value not in ("replicated", "sharded"):
                raise _core.ConfigError(f"embedding_mode is {value!r}, expected 'replicated' or "
                                        "'sharded'")
            self.__dict__[name] = value
        elif name == "memory_limit":
            self.__dict__[name] = str(value)
        elif name == "fuse_grad_size_in_MB":
            self.__dict__.update(fuse_grad_size_in_MB=value, _bucket_set=True)
        elif name in _NOT_YET:
            if value != _NOT_YET[name]:
                raise _core.ConfigError(f"DistributedStrategy.{name}={value!r} is not supported")
        elif name in _DEFAULTS:
            self._set_default(name, value)
        elif name in _OTHERS_NOT_YET:
            raise _core.ConfigError(f"DistributedStrategy.{name} is not supported")
        elif name in ("hierarchical_allreduce_inter_nranks", *_CONFIGS_NOT_YET, *_ENGINE):
            self.__dict__[name] = value
        else:
            raise TypeError(self._no_field(name))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(self._no_field(name))

    def _no_field(self, name: str) -> str:
        known = [field for field in self.__dict__ if not field.startswith("_")]
        known += [*_CONFIGS_NOT_YET, *_OTHERS_NOT_YET, *_ENGINE]
        return f"DistributedStrategy has no field '{name}'{_nearest(name, known)}"

    def _set_default(self, name: str, value: Any) -> None:
        if value not in _DEFAULTS[name]:
            raise _core.ConfigError(f"DistributedStrategy.{name}={value!r} is not supported, "
                                    f"expected {_DEFAULTS[name][0]!r}")
        self.__dict__[name] = value

    def _set_a_sync_configs(self, configs: Dict[str, Any]) -> None:
        if configs.get("use_ps_gpu"):
            raise _core.ConfigError("a_sync_configs.use_ps_gpu is not supported")
        if configs.get("geo_scale", "mean") not in ("mean", "sum"):
            raise _core.ConfigError(f"a_sync_configs.geo_scale is {configs['geo_scale']!r}, "
                                    "expected 'mean' or 'sum'")
        self._set_configs("a_sync_configs", configs)

    def _set_configs(self, name: str, configs: Dict[str, Any]) -> None:
        known = self.__dict__[name]
        for key in configs:
            if key not in known:
                raise _core.ConfigError(f"{name} has no key '{key}'{_nearest(key, known)}")
        known.update(configs)

    def _engine(self) -> dict:
        """The engine's words; as it is: async."""
        configs = self.a_sync_configs
        return {**self._of_ranks(), "memory_limit": self.memory_limit, "a_sync": self.a_sync,
                "k_steps": max(0, configs["k_steps"]),
                "geo_sum": configs["geo_scale"] == "sum", "half_async": configs["half_async"],
                "max_merge_var_num": configs["max_merge_var_num"],
                "send_queue_size": configs["send_queue_size"],
                "launch_barrier": configs["launch_barrier"]}

    def _set_for_ranks(self) -> List[str]:
        """The fields that say how ranks train, of those that say something."""
        on = [name for name in _SWITCHES if getattr(self, name)]
        return on + [name for name, is_set in (
            ("fuse_all_reduce_ops", not self.fuse_all_reduce_ops),
            ("fuse_grad_size_in_MB", self._bucket_set),
            ("gradient_scale_configs", self.gradient_scale_configs["scale_strategy"] != "avg"),
            ("deterministic", self.deterministic),
            ("embedding_mode", self.embedding_mode != "replicated"),
            ("hierarchical_allreduce_inter_nranks",
             self.hierarchical_allreduce_inter_nranks != 1)) if is_set]

    def _refuse_of_ranks(self) -> None:
        """What is for ranks only would be ignored in a process that is none."""
        for name in self._set_for_ranks():
            raise _core.ConfigError(f"DistributedStrategy.{name} is for ranks, which "
                                    "fleet.init(is_collective=True) makes of this process")

    def _of_ranks(self) -> dict:
        """The engine's words for ranks that train without servers."""
        scale = self.gradient_scale_configs["scale_strategy"]
        if scale not in ("avg", "sum") or self.gradient_scale_configs["scale_gradient"]:
            raise _core.ConfigError(f"gradient_scale_configs is {self.gradient_scale_configs}, "
                                    "expected scale_strategy 'avg' or 'sum', scale_gradient False")
        words = {name: getattr(self, name)
                 for name in (*_SWITCHES, "fuse_all_reduce_ops", "embedding_mode")}
        words["hierarchical_allreduce_inter_nranks"] = self.hierarchical_allreduce_inter_nranks
        built = self.__dict__.get("build_strategy")
        words["sync_batch_norm"] |= bool(getattr(built, "sync_batch_norm", False))
        words.update(gradient_scale=scale, deterministic=self.deterministic,
                     gradient_merge_configs=self.gradient_merge_configs,
                     lars_configs=self.lars_configs, lamb_configs=self.lamb_configs)
        if self._bucket_set:
            words["fuse_grad_size_in_MB"] = float(self.fuse_grad_size_in_MB)
        return words

    def _of_dynamic(self) -> tuple:
        """(deterministic, scale) of a dynamic graph's gradients, which take no other words."""
        words = self._of_ranks()
        for name in self._set_for_ranks():
            if name not in ("sync_batch_norm", "gradient_scale_configs", "deterministic"):
                raise _core.ConfigError(f"DistributedStrategy.{name} is for static programs, and "
                                        "this graph is dynamic")
        return self.deterministic, words["gradient_scale"]

    def __repr__(self) -> str:
        configs = self.a_sync_configs
        mode = "sync" if not self.a_sync else "geo" if configs["k_steps"] > 0 else \
            "half_async" if configs["half_async"] else "async"
        return f"DistributedStrategy({mode}, a_sync_configs={configs})"
