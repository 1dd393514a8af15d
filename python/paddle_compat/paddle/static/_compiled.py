"""Wrappers that ask other engines for optimisations; ours makes its own."""

from typing import Any, Optional, Sequence

from argosy import ConfigError


class _Settings:
    """Fields with defaults; a value that is not the default has no meaning here and is refused."""

    _defaults: dict = {}

    def __init__(self) -> None:
        self.__dict__.update(self._defaults)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            raise AttributeError(f"{type(self).__name__} has no field '{name}'")
        self.__dict__[name] = value


class BuildStrategy(_Settings):
    """Of no effect: the executor fuses and reuses memory by itself."""

    _defaults = {"fuse_elewise_add_act_ops": False, "fuse_bn_act_ops": False, "memory_optimize": None,
                 "enable_inplace": False, "fuse_all_reduce_ops": False,
                 "fuse_all_optimizer_ops": False, "sync_batch_norm": False, "num_trainers": 1,
                 "trainer_id": 0, "enable_sequential_execution": False}


class ExecutionStrategy(_Settings):
    """Of no effect: a program runs on the calling thread."""

    _defaults = {"num_threads": 1, "num_iteration_per_drop_scope": 10, "num_iteration_per_run": 1,
                 "use_thread_barrier": False}


class CompiledProgram:
    """A program as it is: every program is planned when it is first run."""

    def __init__(self, program: Any, build_strategy: Optional[BuildStrategy] = None):
        self._program = getattr(program, "_program", program)

    def with_data_parallel(self, loss_name: Optional[str] = None, build_strategy: Any = None,
                           exec_strategy: Any = None, share_vars_from: Any = None,
                           places: Optional[Sequence[Any]] = None) -> "CompiledProgram":
        """One place: itself. Several are refused; fleetrun starts a process for each."""
        if places is not None and len(places) > 1:
            raise ConfigError(f"with_data_parallel: {len(places)} places in one process are not "
                              "supported; start a process for each with fleetrun")
        return self


class InputSpec:
    """The shape and type of an input."""

    def __init__(self, shape: Sequence[Optional[int]], dtype: str = "float32",
                 name: Optional[str] = None, stop_gradient: bool = False):
        self.shape = [-1 if size is None else size for size in shape]
        self.dtype, self.name, self.stop_gradient = dtype, name, stop_gradient

    def __repr__(self) -> str:
        return f"InputSpec(shape={self.shape}, dtype={self.dtype}, name={self.name})"
