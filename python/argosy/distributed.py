"""Ranks that call each other: every rank makes the same calls in the same order."""

from typing import Any, Callable, Dict, List, Optional, Sequence

import numpy as np

from argosy import _core
from argosy._apply import Tensor

__all__ = ["Group", "ReduceOp", "Task", "all_gather", "all_gather_object", "all_reduce", "alltoall",
           "barrier", "broadcast", "destroy_process_group", "get_group", "init_parallel_env",
           "irecv", "is_available", "is_initialized", "isend", "new_group", "recv", "reduce",
           "reduce_scatter", "scatter", "send", "wait"]


class ReduceOp:
    """How elements of several ranks become one."""

    SUM = 0
    MAX = 1
    MIN = 2
    PROD = 3
    AVG = 4


_WORDS = {ReduceOp.SUM: "sum", ReduceOp.MAX: "max", ReduceOp.MIN: "min", ReduceOp.PROD: "prod",
          ReduceOp.AVG: "avg"}


class Group:
    """Some ranks of the job, or all of them."""

    def __init__(self, id: int, ranks: Sequence[int], core: Optional[Any]):
        self.id, self.ranks, self._core = id, list(ranks), core

    @property
    def rank(self) -> int:
        """This process' place among them; -1 if it is none of them."""
        return -1 if self._core is None else self._core.rank

    @property
    def nranks(self) -> int:
        """How many there are."""
        return len(self.ranks)

    world_size = nranks

    @property
    def name(self) -> str:
        """Its name in messages."""
        return f"_default_pg{self.id}"

    def is_member(self) -> bool:
        """Whether this process is one of them."""
        return self._core is not None

    def get_group_rank(self, rank: int) -> int:
        """The place of a rank of the job among them; -1 if it has none."""
        return self.ranks.index(rank) if rank in self.ranks else -1

    @property
    def process_group(self) -> "Group":
        """This group."""
        return self

    def __repr__(self) -> str:
        return f"Group(id={self.id}, rank={self.rank}, ranks={self.ranks})"


class Task:
    """A call under way. Its Tensors are to be left alone until wait() has returned."""

    def __init__(self, core: Any, number: int, finish: Callable[[], None]):
        self._core, self._number, self._finish = core, number, finish
        _tasks.setdefault(id(core), []).append(self)

    def wait(self) -> bool:
        """Returns when the call is over; raises what it raised."""
        if self._number:
            self._core.wait(self._number)
            self._number = 0
            _tasks[id(self._core)].remove(self)
            self._finish()
        return True

    def is_completed(self) -> bool:
        """Whether somebody has waited for it."""
        return not self._number

    synchronize = wait


class _Over:
    """The task of a call that is over, or that this rank has no part in."""

    def wait(self) -> bool:
        """Returns at once."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    synchronize = wait


_tasks: Dict[int, List[Task]] = {}
_groups: Dict[int, Group] = {}
_fleet: Any = None


def _adopt(fleet: Any) -> None:
    """The ranks of this fleet are the process' own from now on."""
    global _fleet
    if _fleet is not None and _fleet._core is not fleet._core:
        _groups.clear()
    _fleet = fleet


def init_parallel_env() -> Group:
    """Meets the other ranks that the launcher has started; a process alone is the only rank."""
    from argosy.fleet import Fleet

    if _fleet is None:
        Fleet().init(is_collective=True)
    return _world()


def is_available() -> bool:
    """True: ranks are a part of every build."""
    return True


def is_initialized() -> bool:
    """Whether the ranks have met."""
    return 0 in _groups


def destroy_process_group(group: Optional[Group] = None) -> None:
    """Forgets a group, or all of them; to use one again is a mistake."""
    for number in [number for number, known in _groups.items() if group in (None, known)]:
        del _groups[number]


def _world() -> Group:
    if _fleet is None:
        raise _core.ConfigError("ranks have not met: init_parallel_env() or "
                                "fleet.init(is_collective=True) comes first")
    if 0 not in _groups:
        core = _fleet._core.group()
        _groups[0] = Group(0, range(core.size), core)
    return _groups[0]


def new_group(ranks: Optional[Sequence[int]] = None, backend: Optional[str] = None,
              timeout: Any = None) -> Group:
    """A group of some ranks in their order, all of them without a list. Every rank calls it."""
    world = _world()
    ranks = world.ranks if ranks is None else sorted(int(rank) for rank in ranks)
    number = max(_groups) + 1
    _groups[number] = Group(number, ranks, world._core.sub_group(ranks))
    return _groups[number]


def get_group(id: int = 0) -> Group:
    """The group with a number; 0: all ranks."""
    if id == 0:
        return _world()
    if id not in _groups:
        raise _core.ConfigError(f"get_group: no group {id}, there are {sorted(_groups)}")
    return _groups[id]


def _call(group: Optional[Group], sync: bool, kind: str, source: Any, target: Any, root: int = -1,
          op: int = ReduceOp.SUM, finish: Callable[[], None] = lambda: None) -> Any:
    """Makes a call on arrays, or starts it. A rank outside of the group has no part in it."""
    group = group or _world()
    if group._core is None:
        return _Over()
    if op not in _WORDS:
        raise _core.ConfigError(f"{kind}: op={op!r}, expected one of ReduceOp")
    if root >= 0:
        root = _root_in(group, kind, root)
    if not sync:
        return Task(group._core, group._core.start(kind, source, target, root, _WORDS[op]), finish)
    group._core.run(kind, source, target, root, _WORDS[op])
    finish()
    return _Over()


def _root_in(group: Group, kind: str, rank: int) -> int:
    place = group.get_group_rank(rank)
    if place < 0:
        raise _core.ConfigError(f"{kind}: rank {rank} is none of {group}")
    return place


def _memory(kind: str, tensor: Any) -> np.ndarray:
    """The memory of a Tensor, which the call reads or writes."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{kind} takes a Tensor, not {type(tensor).__name__}")
    return tensor.numpy()


def _packed(kind: str, tensors: Any, like: Optional[np.ndarray] = None) -> np.ndarray:
    """The numbers of a list of Tensors of one shape and type in one array, or of one Tensor."""
    if isinstance(tensors, Tensor):
        return tensors.numpy()
    arrays = [_memory(kind, tensor) for tensor in tensors]
    for array in arrays:
        first = arrays[0] if like is None else like
        if array.shape != first.shape or array.dtype != first.dtype:
            raise _core.ConfigError(f"{kind}: a Tensor of {array.dtype}{list(array.shape)} beside "
                                    f"one of {first.dtype}{list(first.shape)}")
    return np.stack(arrays)


def _count(kind: str, tensors: Sequence[Any], group: Optional[Group]) -> None:
    ranks = (group or _world()).nranks
    if len(tensors) != ranks:
        raise _core.ConfigError(f"{kind}: {len(tensors)} Tensors, expected one for each of {ranks} "
                                "ranks")


def all_reduce(tensor: Tensor, op: int = ReduceOp.SUM, group: Optional[Group] = None,
               sync_op: bool = True) -> Any:
    """Makes the Tensor the sum over all ranks, or what op says, element by element."""
    return _call(group, sync_op, "all_reduce", None, _memory("all_reduce", tensor), op=op)


def reduce(tensor: Tensor, dst: int, op: int = ReduceOp.SUM, group: Optional[Group] = None,
           sync_op: bool = True) -> Any:
    """The same in rank dst only; the Tensors of the others stay."""
    memory = _memory("reduce", tensor)
    return _call(group, sync_op, "reduce", memory, memory, dst, op)


def broadcast(tensor: Tensor, src: int, group: Optional[Group] = None, sync_op: bool = True) -> Any:
    """Makes the Tensor that of rank src."""
    return _call(group, sync_op, "broadcast", None, _memory("broadcast", tensor), src)


def all_gather(tensor_list: Any, tensor: Tensor, group: Optional[Group] = None,
               sync_op: bool = True) -> Any:
    """Adds the Tensor of each rank to the list, or fills a Tensor with one after the other."""
    mine = _memory("all_gather", tensor)
    if isinstance(tensor_list, Tensor):
        return _call(group, sync_op, "all_gather", mine, tensor_list.numpy())
    group = group or _world()
    all_ranks = np.empty((group.nranks, *mine.shape), mine.dtype)

    def hand_out() -> None:
        fresh = [Tensor(np.array(part).reshape(tensor.shape)) for part in all_ranks]
        for place, part in zip(tensor_list, fresh):
            place.set_value(part)
        tensor_list.extend(fresh[len(tensor_list):])

    return _call(group, sync_op, "all_gather", mine, all_ranks, finish=hand_out)


def all_gather_object(object_list: List[Any], obj: Any, group: Optional[Group] = None) -> None:
    """Adds the object of each rank, which pickle can write, to the list."""
    import pickle

    group = group or _world()
    if not group.is_member():
        return
    mine = np.frombuffer(pickle.dumps(obj), np.uint8)
    sizes = np.empty(group.nranks, np.int64)
    _call(group, True, "all_gather", np.array([mine.size], np.int64), sizes)
    words = np.zeros(-(-int(sizes.max()) // 4), np.int32)
    words.view(np.uint8)[:mine.size] = mine
    all_ranks = np.empty((group.nranks, words.size), np.int32)
    _call(group, True, "all_gather", words, all_ranks)
    for size, part in zip(sizes, all_ranks):
        object_list.append(pickle.loads(part.view(np.uint8)[:size].tobytes()))


def scatter(tensor: Tensor, tensor_list: Optional[Sequence[Tensor]] = None, src: int = 0,
            group: Optional[Group] = None, sync_op: bool = True) -> Any:
    """Gives each rank its Tensor of the list that rank src has."""
    target = _memory("scatter", tensor)
    source = None
    if (group or _world()).rank == (group or _world()).get_group_rank(src):
        _count("scatter", tensor_list or (), group)
        source = _packed("scatter", tensor_list, target)
    return _call(group, sync_op, "scatter", source, target, src)


def reduce_scatter(tensor: Tensor, tensor_list: Any, op: int = ReduceOp.SUM,
                   group: Optional[Group] = None, sync_op: bool = True) -> Any:
    """Makes the Tensor the sum over all ranks of what they have for this one in their lists."""
    target = _memory("reduce_scatter", tensor)
    if not isinstance(tensor_list, Tensor):
        _count("reduce_scatter", tensor_list, group)
    source = _packed("reduce_scatter", tensor_list, target)
    return _call(group, sync_op, "reduce_scatter", source, target, op=op)


def alltoall(in_tensor_list: Any, out_tensor_list: Any, group: Optional[Group] = None,
             sync_op: bool = True) -> Any:
    """Sends a Tensor to each rank and adds what each has sent here to the second list."""
    source = _packed("alltoall", in_tensor_list)
    if isinstance(in_tensor_list, Tensor):
        return _call(group, sync_op, "all_to_all", source, _memory("alltoall", out_tensor_list))
    _count("alltoall", in_tensor_list, group)
    received = np.empty_like(source)

    def hand_out() -> None:
        fresh = [Tensor(np.array(part).reshape(sent.shape))
                 for part, sent in zip(received, in_tensor_list)]
        for place, part in zip(out_tensor_list, fresh):
            place.set_value(part)
        out_tensor_list.extend(fresh[len(out_tensor_list):])

    return _call(group, sync_op, "all_to_all", source, received, finish=hand_out)


def send(tensor: Tensor, dst: int = 0, group: Optional[Group] = None, sync_op: bool = True) -> Any:
    """Sends the Tensor to a rank, which receives it."""
    return _call(group, sync_op, "send", _memory("send", tensor), None, dst)


def recv(tensor: Tensor, src: int = 0, group: Optional[Group] = None, sync_op: bool = True) -> Any:
    """Makes the Tensor what a rank sends, of the same type and number of elements."""
    return _call(group, sync_op, "receive", None, _memory("recv", tensor), src)


def isend(tensor: Tensor, dst: int, group: Optional[Group] = None) -> Any:
    """Starts to send."""
    return send(tensor, dst, group, sync_op=False)


def irecv(tensor: Tensor, src: int = 0, group: Optional[Group] = None) -> Any:
    """Starts to receive."""
    return recv(tensor, src, group, sync_op=False)


def barrier(group: Optional[Group] = None) -> None:
    """Returns when every rank has come here."""
    _call(group, True, "barrier", None, None)


def wait(tensor: Any, group: Optional[Group] = None, use_calc_stream: bool = True) -> None:
    """Returns when all calls of the group that were started are over."""
    core = (group or _world())._core
    for task in list(_tasks.get(id(core), ())):
        task.wait()
