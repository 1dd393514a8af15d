"""The job as a script sees it."""

import os
import weakref
from typing import Any, List, Optional, Sequence

import numpy as np

from argosy import _core, distributed, nn
from argosy.fleet._parallel import DataParallel, StepGradients
from argosy.fleet._strategy import DistributedStrategy


class Role:
    """Kinds of processes."""

    WORKER = 1
    SERVER = 2
    HETER_WORKER = 3
    ALL = 4


class PaddleCloudRoleMaker:
    """The role that the environment of this process says."""

    def __init__(self, is_collective: bool = False, **kwargs: Any):
        self._is_collective = is_collective

    def _apply(self, core: Any) -> None:
        core.init()


class UserDefinedRoleMaker:
    """A role that the script says."""

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, current_id: int = 0,
                 role: int = Role.WORKER, worker_endpoints: Sequence[str] = (),
                 server_endpoints: Sequence[str] = (), worker_num: Optional[int] = None):
        self._is_collective = is_collective
        self._server = role == Role.SERVER
        self._index = current_id
        self._workers = worker_num or len(worker_endpoints) or 1
        self._servers = list(server_endpoints)

    def _apply(self, core: Any) -> None:
        core.init_role(self._server, self._index, self._workers, self._servers)


class Util:
    """What workers do together; every worker makes the same calls in the same order."""

    def __init__(self, core: Any):
        self._core = core

    def all_reduce(self, input: Any, mode: str = "sum", comm_world: str = "worker") -> np.ndarray:
        """The sum, min or max over all workers, element by element."""
        self._workers_only(comm_world)
        array = np.asarray(input)
        result = np.array(self._core.all_reduce([float(v) for v in array.ravel()], mode))
        return result.astype(array.dtype).reshape(array.shape)

    def all_gather(self, input: Any, comm_world: str = "worker") -> List[float]:
        """Each worker's number."""
        self._workers_only(comm_world)
        kind = type(input)
        return [kind(value) for value in self._core.all_gather(float(input))]

    def barrier(self, comm_world: str = "worker") -> None:
        """Returns when every worker has come here."""
        self._workers_only(comm_world)
        self._core.barrier_worker()

    def get_file_shard(self, files: Sequence[str]) -> List[str]:
        """This worker's share: contiguous, the first ones take one more."""
        return self._core.file_shard([os.fspath(file) for file in files])

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Prints in one worker."""
        if self._core.worker_index() == rank_id:
            print(message, flush=True)

    @staticmethod
    def _workers_only(comm_world: str) -> None:
        if comm_world != "worker":
            raise _core.ConfigError(f"comm_world={comm_world!r}: expected 'worker'")


class DistributedOptimizer:
    """An optimizer that knows its fleet."""

    def __init__(self, fleet: "Fleet", optimizer: Any, strategy: DistributedStrategy):
        self._fleet, self._optimizer, self._strategy = fleet, optimizer, strategy
        self._gradients: Optional[StepGradients] = None

    def minimize(self, loss: Any, startup_program: Any = None, parameters: Any = None,
                 no_grad_set: Any = None, parameter_list: Any = None, **kwargs: Any) -> Any:
        """Says what all processes of the job train or serve."""
        if not hasattr(loss, "program"):
            if all(p.grad is None for p in self._optimizer._parameter_list or ()):
                loss.backward()
            self._reduce()
            return self._optimizer.minimize(loss)
        result = loss.program.record.minimize(self._optimizer, loss,
                                              parameters or parameter_list, no_grad_set)
        self._fleet._minimize(loss.program, self._strategy)
        return result

    def step(self) -> None:
        """Updates every parameter by the mean of all ranks' gradients."""
        self._reduce()
        self._optimizer.step()

    def _reduce(self) -> None:
        if not self._fleet._collective or self._fleet.worker_num() == 1:
            return
        if self._gradients is None:
            self._strategy._of_dynamic()
            self._gradients = StepGradients(self._optimizer._parameter_list or (), self._strategy)
        self._gradients.reduce()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._optimizer, name)


class Fleet:
    """A process without a job works alone: the same script trains locally."""

    _all: "weakref.WeakSet[Fleet]" = weakref.WeakSet()

    def __init__(self) -> None:
        self._core = _core.Fleet()
        self._initialised = False
        self._collective = False
        self._strategy: Optional[DistributedStrategy] = None
        self._program: Any = None
        self._pending: Any = None
        self._training: Any = None
        Fleet._all.add(self)

    def init(self, role_maker: Any = None, is_collective: bool = False,
             strategy: Optional[DistributedStrategy] = None) -> "Fleet":
        """Who this process is."""
        role_maker = role_maker or PaddleCloudRoleMaker(is_collective)
        self._collective = is_collective or role_maker._is_collective
        if self._collective:
            self._meet_ranks(strategy)
        else:
            role_maker._apply(self._core)
        self._strategy = strategy
        self._initialised = True
        return self

    def _meet_ranks(self, strategy: Optional[DistributedStrategy]) -> None:
        """The ranks that init_parallel_env has met are this fleet's; a process meets them once."""
        met = distributed._fleet
        if met is not None and met is not self and met._program is None and met.worker_num() > 1:
            self._core = met._core
        else:
            self._core.init_collective(strategy is not None and strategy.deterministic)
        distributed._adopt(self)

    def distributed_optimizer(self, optimizer: Any,
                              strategy: Optional[DistributedStrategy] = None) -> DistributedOptimizer:
        """The optimizer, so that its minimize() is the job's."""
        self._need_init("distributed_optimizer")
        return DistributedOptimizer(self, optimizer, strategy or self._strategy
                                    or DistributedStrategy())

    def _need_init(self, call: str) -> None:
        if not self._initialised:
            raise _core.ConfigError(f"fleet.{call}: fleet.init() comes first")

    def _minimize(self, program: Any, strategy: DistributedStrategy) -> None:
        if self._core.is_local() and not self._collective:
            return strategy._refuse_of_ranks()
        self._pending = strategy._of_ranks() if self._collective else strategy._engine()
        self._program = program
        program.record.fleet = self

    def _announce(self) -> None:
        """Tells the engine what is trained, as late as can be: scripts add to their program."""
        if self._pending is None:
            return
        # In sync mode, and between ranks, a step is one batch.
        threads = None if self._pending.get("a_sync") else 1
        record = self._program.record
        self._core.minimize(record.recorder, record.spec(threads), self._pending)
        self._pending = None

    def _use(self) -> Any:
        self._announce()
        return self._core.training()

    def _leave(self) -> None:
        if self._initialised and self._program is not None and self._core.is_worker():
            self._core.stop_worker()

    def is_first_worker(self) -> bool:
        """True in worker 0, which prints and saves."""
        return self._core.is_first_worker()

    def worker_index(self) -> int:
        """This worker's number."""
        return self._core.worker_index()

    def worker_num(self) -> int:
        """How many workers there are."""
        return self._core.worker_num()

    def is_worker(self) -> bool:
        """True in a worker, and without a job."""
        return self._core.is_worker()

    def worker_endpoints(self, to_string: bool = False) -> Any:
        """Addresses of the workers, where they are known."""
        return _listed(self._core.worker_endpoints(), to_string)

    def server_num(self) -> int:
        """How many servers there are."""
        return self._core.server_num()

    def server_index(self) -> int:
        """This server's number."""
        return self._core.server_index()

    def server_endpoints(self, to_string: bool = False) -> Any:
        """Addresses of the servers."""
        return _listed(self._core.server_endpoints(), to_string)

    def is_server(self) -> bool:
        """True in a server."""
        return self._core.is_server()

    def node_num(self) -> int:
        """Machines, as far as the addresses of workers tell."""
        return len({address.split(":")[0] for address in self._core.worker_endpoints()}) or 1

    @property
    def util(self) -> Util:
        """What workers do together."""
        return Util(self._core)

    def barrier_worker(self) -> None:
        """Returns when every worker has come here."""
        if self._program is not None or self._collective:
            self._announce()
            self._core.barrier_worker()

    def init_worker(self, scopes: Any = None) -> None:
        """Connects to the servers and waits for the other workers."""
        if self._program is not None:
            self._announce()
            self._core.init_worker()

    def last_step(self) -> int:
        """How many batches of this worker the servers have from processes before this one: the
        first calls of exe.run, so many, compute and change nothing. 0 unless it was started again.
        """
        if self._program is None:
            return 0
        self._announce()
        return self._core.last_step()

    def init_server(self, *args: Any, **kwargs: Any) -> None:
        """A folder as the argument: this server's part of a save is loaded first."""
        self._announce()
        folder = args[0] if args else kwargs.get("dirname") or kwargs.get("model_dir")
        self._core.init_server(os.fspath(folder) if folder else "")

    def run_server(self) -> None:
        """Serves until all workers have left."""
        self._announce()
        self._core.run_server()

    def stop_worker(self) -> None:
        """Leaves the job when everything sent has been applied."""
        if self._program is not None:
            self._core.stop_worker()

    def save_persistables(self, executor: Any, dirname: str, main_program: Any = None,
                          mode: int = 0) -> None:
        """The first worker lets all servers save; the others wait."""
        if mode != 0:
            raise _core.ConfigError(f"save_persistables: mode={mode}, expected 0: all of it")
        if self._program is None:
            from argosy import static

            return static.save_persistables(executor, dirname, main_program)
        self._core.save_persistables(os.fspath(dirname))

    def load_model(self, path: str, mode: int = 0) -> None:
        """The first worker loads what save_persistables wrote; the others wait."""
        if mode != 0:
            raise _core.ConfigError(f"load_model: mode={mode}, expected 0: all of it")
        self._core.load_model(os.fspath(path))

    def save_inference_model(self, executor: Any, dirname: str, feeded_var_names: Sequence[str],
                             target_vars: Sequence[Any], main_program: Any = None,
                             export_for_deployment: bool = True, mode: int = 0) -> None:
        """The first worker writes what the targets need, in inference mode."""
        if self._program is None:
            from argosy import static

            return static.save_inference_model(dirname, [], target_vars, executor)
        self._core.save_inference_model(os.fspath(dirname), [v.name for v in target_vars])

    def shrink(self, threshold: Optional[int] = None) -> None:
        """Drops rows that were not seen for so long."""
        self._core.shrink(0 if threshold is None else int(threshold))

    def distributed_model(self, model: Any) -> Any:
        """The model with the values of rank 0, whose gradients are the mean over all ranks. With
        one process: the model."""
        self._need_init("distributed_model")
        strategy = self._strategy or DistributedStrategy()
        if strategy.sync_batch_norm:
            model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
        if self.worker_num() == 1:
            return model
        return DataParallel(model, strategy,
                            find_unused_parameters=strategy.find_unused_parameters)

    def split_files(self, files: Sequence[str]) -> List[str]:
        """This worker's share, as util.get_file_shard."""
        return self.util.get_file_shard(files)


def _listed(endpoints: List[str], to_string: bool) -> Any:
    return ",".join(endpoints) if to_string else endpoints
