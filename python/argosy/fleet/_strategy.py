"""How a program is distributed."""

import difflib
from typing import Any, Dict

from argosy import _core

_A_SYNC = {"k_steps": -1, "max_merge_var_num": 1, "send_queue_size": 16,
           "independent_recv_thread": False, "min_send_grad_num_before_recv": 1,
           "thread_pool_size": 1, "send_wait_times": 1, "runtime_split_send_recv": False,
           "launch_barrier": True, "heter_worker_device_guard": "cpu", "lr_decay_steps": 10,
           "use_ps_gpu": 0}

# Name: the value that asks for nothing. Anything else is refused until it is built.
_NOT_YET: Dict[str, Any] = {
    "amp": False, "recompute": False, "localsgd": False, "adaptive_localsgd": False,
    "gradient_merge": False, "dgc": False, "lars": False, "lamb": False, "sharding": False,
    "pipeline": False, "fp16_allreduce": False, "sync_batch_norm": False, "tensor_parallel": False,
    "elastic": False, "auto": False, "use_hierarchical_allreduce": False, "asp": False,
    "adam_d2sum": False, "is_fl_ps_mode": False, "with_coordinator": False}

# Of collective training, without a meaning for one process or for servers.
_SETTINGS: Dict[str, Any] = {
    "fuse_all_reduce_ops": True, "fuse_grad_size_in_MB": 32, "fuse_grad_size_in_TFLOPS": 50,
    "last_comm_group_size_MB": 1, "nccl_comm_num": 1, "sync_nccl_allreduce": True,
    "hierarchical_allreduce_inter_nranks": 1, "find_unused_parameters": False,
    "without_graph_optimization": True}


class DistributedStrategy:
    """a_sync: False for sync, True for async; a_sync_configs k_steps above 0 for geo."""

    def __init__(self) -> None:
        fields = self.__dict__
        fields["a_sync"] = True
        fields["_a_sync_set"] = False
        fields["a_sync_configs"] = dict(_A_SYNC)
        fields.update(_NOT_YET)
        fields.update(_SETTINGS)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "a_sync":
            self.__dict__.update(a_sync=bool(value), _a_sync_set=True)
            self.a_sync_configs["k_steps"] = 0
        elif name == "a_sync_configs":
            self._set_a_sync_configs(value)
        elif name in _NOT_YET:
            if value != _NOT_YET[name]:
                raise _core.ConfigError(f"DistributedStrategy.{name}={value!r} is not supported")
        elif name in _SETTINGS:
            self.__dict__[name] = value
        else:
            near = difflib.get_close_matches(name, ["a_sync", "a_sync_configs", *_NOT_YET, *_SETTINGS])
            hint = f", did you mean {' or '.join(near)}?" if near else ""
            raise TypeError(f"DistributedStrategy has no field '{name}'{hint}")

    def _set_a_sync_configs(self, configs: Dict[str, Any]) -> None:
        for key, value in configs.items():
            if key not in _A_SYNC:
                near = difflib.get_close_matches(key, _A_SYNC)
                hint = f", did you mean {' or '.join(near)}?" if near else ""
                raise _core.ConfigError(f"a_sync_configs has no key '{key}'{hint}")
            if key == "use_ps_gpu" and value:
                raise _core.ConfigError("a_sync_configs.use_ps_gpu is not supported")
        self.a_sync_configs.update(configs)

    def _engine(self) -> dict:
        """The engine's words; as it is: async."""
        configs = self.a_sync_configs
        return {"a_sync": self.a_sync, "k_steps": max(0, configs["k_steps"]),
                "max_merge_var_num": configs["max_merge_var_num"],
                "send_queue_size": configs["send_queue_size"],
                "launch_barrier": configs["launch_barrier"]}

    def __repr__(self) -> str:
        mode = "sync" if not self.a_sync else "geo" if self.a_sync_configs["k_steps"] > 0 else "async"
        return f"DistributedStrategy({mode}, a_sync_configs={self.a_sync_configs})"
