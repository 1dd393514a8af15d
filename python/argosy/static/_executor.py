"""Runs recorded programs."""

from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from argosy import _core
from argosy._progress import pass_progress
from argosy.static._metrics import MeterVariable
from argosy.static._program import Program, default_main_program
from argosy.static._record import Gradient, Parameter, Variable


class LoDTensor:
    """Values of instances of any number each: an array and the offsets where each begins."""

    def __init__(self, values: Any = None, lod: Optional[Sequence[Sequence[int]]] = None):
        self._values = None if values is None else np.asarray(values)
        self._lod = [list(level) for level in lod or []]

    def set(self, values: Any, place: Any = None) -> None:
        """Takes an array over."""
        self._values = np.asarray(values)

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Offsets, one list for each level; one level is supported."""
        self._lod = [list(level) for level in lod]

    def set_recursive_sequence_lengths(self, lengths: Sequence[Sequence[int]]) -> None:
        """The same by the lengths of the instances."""
        self._lod = [[0] + list(np.cumsum(level)) for level in lengths]

    def lod(self) -> List[List[int]]:
        """The offsets."""
        return self._lod

    def recursive_sequence_lengths(self) -> List[List[int]]:
        """The lengths."""
        return [list(np.diff(level)) for level in self._lod]

    def shape(self) -> List[int]:
        """Of the array."""
        return list(self._values.shape)

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self._values, dtype=dtype)


def create_lod_tensor(data: Any, recursive_seq_lens: Sequence[Sequence[int]], place: Any = None
                      ) -> LoDTensor:
    """A LoDTensor of an array, or of a list of lists, with the lengths of its instances."""
    if isinstance(data, list):
        data = np.concatenate([np.asarray(item).reshape(-1, 1) for item in data])
    tensor = LoDTensor(data)
    tensor.set_recursive_sequence_lengths(recursive_seq_lens)
    return tensor


class Executor:
    """exe.run(program, feed, fetch_list): one batch; train_from_dataset: a pass over files."""

    def __init__(self, place: Any = None):
        self.place = place
        self._fetches: Dict[Tuple, "_Fetches"] = {}

    def run(self, program: Optional[Program] = None, feed: Any = None,
            fetch_list: Optional[Sequence[Any]] = None, feed_var_name: str = "feed",
            fetch_var_name: str = "fetch", scope: Any = None, return_numpy: bool = True,
            use_program_cache: bool = False, use_prune: bool = False) -> List[Any]:
        """Runs a program once. Programs with an optimizer are trained; the fetched values come as
        arrays of at least one dimension."""
        program = _plain(program if program is not None else default_main_program())
        own_way = getattr(program, "run_by", None)
        if own_way is not None:
            return own_way(self, feed, fetch_list)
        if program.startup_of is not None:
            program.startup_of.record.begin_anew()
            return []
        fetches = self._fetches_of(program, fetch_list)
        training = program.record.use()
        feeds = _feeds(program, feed)
        train = program.record.minimized is not None and not program.for_test
        values = training.run(feeds, fetches.numbers, train)
        return fetches.results(values, return_numpy)

    def _fetches_of(self, program: Program, fetch_list: Optional[Sequence[Any]]) -> "_Fetches":
        key = (id(program.record), program.for_test, len(program.record.meters),
               tuple(item if isinstance(item, str) else id(item) for item in fetch_list or ()))
        known = self._fetches.get(key)
        if known is None:
            known = self._fetches[key] = _Fetches(program, fetch_list)
        return known

    def train_from_dataset(self, program: Optional[Program] = None, dataset: Any = None,
                           scope: Any = None, thread: int = 0, debug: bool = False,
                           fetch_list: Optional[Sequence[Any]] = None,
                           fetch_info: Optional[Sequence[str]] = None, print_period: int = 100,
                           fetch_handler: Any = None) -> None:
        """Trains on all files of a data set, and prints the fetched metrics now and then."""
        program = _program_of_pass("train_from_dataset", program, dataset, fetch_handler)
        if program.record.minimized is None:
            raise _core.ConfigError("train_from_dataset: the program has no optimizer; call "
                                    "minimize() first, or infer_from_dataset")
        threads = dataset.compute_threads(thread)
        names, infos = _metrics_of(program, fetch_list, fetch_info)
        training = program.record.use()
        data = dataset.bound()
        with pass_progress() as bar:
            _core.train_from_dataset(training, data,
                                     {"fetch_list": names, "fetch_info": infos, "debug": debug,
                                      "print_period": print_period, "threads": threads}, print,
                                     bar)

    def infer_from_dataset(self, program: Optional[Program] = None, dataset: Any = None,
                           scope: Any = None, thread: int = 0, debug: bool = False,
                           fetch_list: Optional[Sequence[Any]] = None,
                           fetch_info: Optional[Sequence[str]] = None, print_period: int = 100,
                           fetch_handler: Any = None) -> None:
        """Measures a data set without training, and prints the fetched metrics over all of it."""
        program = _program_of_pass("infer_from_dataset", program, dataset, fetch_handler)
        names, infos = _metrics_of(program, fetch_list, fetch_info)
        training = program.record.use()
        metrics = _core.infer_from_dataset(training, dataset.bound())
        for name, info in zip(names, infos):
            print(f"{info}\t{metrics[name]:.6f}")

    def close(self) -> None:
        """Leaves the job, where there is one: nobody waits for this trainer any more."""
        from argosy import fleet

        fleet.leave_all()


class _Fetches:
    """What a fetch list comes down to."""

    def __init__(self, program: Program, fetch_list: Optional[Sequence[Any]]):
        self._items = [_find(program, item) for item in _flat(fetch_list)]
        self._held = list(fetch_list or ())  # so that nothing else gets their ids
        self._meters = list(program.record.meters)
        for meter in self._meters:
            self._items += [meter.prediction, meter.label]
        self._asked = len(self._items) - 2 * len(self._meters)
        self.numbers = [item.number for item in self._items if isinstance(item, Variable)]

    def results(self, values: List[np.ndarray], return_numpy: bool) -> List[Any]:
        """Values by the fetch list, after the meters have counted the batch."""
        tail = values[len(values) - 2 * len(self._meters):]
        for number, meter in enumerate(self._meters):
            meter.add(tail[2 * number], tail[2 * number + 1])
        source = iter(values)
        results = [next(source) if isinstance(item, Variable) else item.value()
                   for item in self._items[:self._asked]]
        return results if return_numpy else [LoDTensor(value) for value in results]


def _flat(fetch_list: Optional[Sequence[Any]]) -> List[Any]:
    flat: List[Any] = []
    for item in fetch_list or ():
        flat += _flat(item) if isinstance(item, (list, tuple)) else [item]
    return flat


def _find(program: Program, item: Any) -> Any:
    if isinstance(item, (Variable, MeterVariable)):
        return item
    name = item if isinstance(item, str) else getattr(item, "name", None)
    if isinstance(item, Gradient) or (name or "").endswith("@GRAD"):
        raise _core.ConfigError(f"fetch_list: '{name}' is a gradient, which cannot be fetched")
    for meter in program.record.meters:
        if name in (f"{meter.name}.tmp_0", f"{meter.name}.tmp_1"):
            return MeterVariable(program, name, meter, "all" if name.endswith("0") else "recent")
    if name is None:
        raise _core.ConfigError(f"fetch_list: {item!r}, expected a variable or its name")
    return program.var(name)


def _plain(program: Any) -> Any:
    """The program inside of a CompiledProgram."""
    return getattr(program, "_program", program)


def _program_of_pass(call: str, program: Any, dataset: Any, fetch_handler: Any) -> Any:
    if dataset is None:
        raise RuntimeError(f"{call}: dataset is None, expected a data set")
    if fetch_handler is not None:
        raise _core.ConfigError(f"{call}: fetch_handler is not supported; fetch_list prints what is "
                                "fetched")
    return _plain(program if program is not None else default_main_program())


def _feeds(program: Program, feed: Any) -> Dict[str, Any]:
    if isinstance(feed, (list, tuple)):
        if len(feed) != 1:
            raise _core.ConfigError(f"feed: {len(feed)} dicts, expected one for this process")
        feed = feed[0]
    return {name: _fed(program, name, value) for name, value in (feed or {}).items()}


_SAFE = {("float64", "float32"), ("int32", "int64"), ("float16", "float32")}


def _fed(program: Program, name: str, value: Any) -> Any:
    variable = program.record.variables.get(name)
    if variable is None:
        known = ", ".join(v.name for v in program.list_vars() if v.is_data)
        raise _core.ConfigError(f"feed '{name}': the program has no such variable, it has {known}")
    array = np.asarray(value)
    wanted = variable.dtype
    if array.dtype != wanted:
        plain = not isinstance(value, np.ndarray)
        if not plain and (str(array.dtype), wanted) not in _SAFE:
            raise _core.ConfigError(f"feed '{name}' is {array.dtype}{list(array.shape)}, expected "
                                    f"{wanted}{variable.shape}, {_line(variable)}")
        array = array.astype(wanted)
    lod = value.lod() if isinstance(value, LoDTensor) else []
    if lod:
        return np.ascontiguousarray(array.reshape(-1)), [int(at) for at in lod[0]]
    _check_shape(variable, array)
    return array


def _check_shape(variable: Variable, array: np.ndarray) -> None:
    shape = variable.shape
    fits = len(shape) == array.ndim and all(a in (-1, b) for a, b in zip(shape, array.shape))
    if not fits:
        raise _core.ConfigError(f"feed '{variable.name}' is {array.dtype}{list(array.shape)}, "
                                f"expected {variable.dtype}{shape}, {_line(variable)}")


def _line(variable: Variable) -> str:
    return "declared at " + variable.program.record.recorder.line(variable.number)


def _metrics_of(program: Program, fetch_list: Optional[Sequence[Any]],
                fetch_info: Optional[Sequence[str]]) -> Tuple[List[str], List[str]]:
    items = [_find(program, item) for item in _flat(fetch_list)]
    infos = list(fetch_info or [item.name for item in items])
    if len(infos) != len(items):
        raise _core.ConfigError(f"fetch_info names {len(infos)} metrics, fetch_list {len(items)}")
    return [_metric_of(program, item) for item in items], infos


def _metric_of(program: Program, item: Any) -> str:
    if isinstance(item, MeterVariable):
        if item.what != "all":
            raise _core.ConfigError(f"fetch_list: '{item.name}' is over the last batches only, "
                                    "which exe.run knows; a pass measures all of them")
        return item.meter.name
    minimized = program.record.minimized
    if minimized is not None and item is minimized.loss:
        return "loss"
    if item.size != 1 or isinstance(item, Parameter):
        raise _core.ConfigError(f"fetch_list: '{item.name}' is {item.dtype}{item.shape}; a pass "
                                "over a data set prints metrics of one number each")
    return item.name
