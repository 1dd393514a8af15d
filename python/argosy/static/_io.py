"""Saving, loading and looking into the values of static programs."""

import os
from typing import Any, List, Optional, Tuple

import numpy as np

from argosy import _core
from argosy.static._program import Program, default_main_program
from argosy.static._record import Table


def save_persistables(executor: Any, dirname: str, main_program: Optional[Program] = None,
                      filename: Optional[str] = None) -> None:
    """All that training needs to go on: parameters, tables, optimizer state."""
    _no_filename(filename)
    _use(main_program).save(os.fspath(dirname))


def load_persistables(executor: Any, dirname: str, main_program: Optional[Program] = None,
                      filename: Optional[str] = None) -> None:
    """What save_persistables wrote."""
    _no_filename(filename)
    _use(main_program).load(os.fspath(dirname))


def save(program: Program, model_path: str, protocol: int = 4) -> None:
    """As save_persistables, to the folder model_path + ".argosy"."""
    _use(program).save(os.fspath(model_path) + ".argosy")


def load(program: Program, model_path: str, executor: Any = None, var_list: Any = None) -> None:
    """What save() wrote."""
    if var_list is not None:
        raise _core.ConfigError("load: var_list is not supported; all values are loaded")
    _use(program).load(os.fspath(model_path) + ".argosy")


def save_inference_model(path: str, feed_vars: Any, fetch_vars: Any, executor: Any = None,
                         program: Optional[Program] = None, **configs: Any) -> None:
    """What the fetched variables need, in inference mode, in a folder of this name."""
    if configs:
        raise _core.ConfigError(f"save_inference_model: {', '.join(configs)}: not supported")
    fetch = fetch_vars if isinstance(fetch_vars, (list, tuple)) else [fetch_vars]
    program = program if program is not None else fetch[0].program
    program.record.use().export_inference(os.fspath(path), [v.name for v in fetch])


class FetchTarget:
    """An answer of a loaded model, by its name."""

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"fetch target {self.name}"


class InferenceProgram:
    """A loaded model; exe.run(program, feed, fetch_list=fetch_targets)."""

    def __init__(self, path: str):
        self._predictor = _core.Predictor(path)
        self.feed_names: List[str] = self._predictor.inputs()
        self.fetch_targets = [FetchTarget(name) for name in self._predictor.outputs()]

    def run_by(self, executor: Any, feed: Any, fetch_list: Any) -> List[np.ndarray]:
        answers = self._predictor.run({name: _plain(value) for name, value in (feed or {}).items()})
        wanted = [getattr(item, "name", item) for item in fetch_list or self.fetch_targets]
        for name in wanted:
            if name not in answers:
                raise _core.ConfigError(f"fetch_list: the model does not answer '{name}', it "
                                        f"answers {', '.join(answers)}")
        return [answers[name] for name in wanted]


def _plain(value: Any) -> Any:
    lod = value.lod() if hasattr(value, "lod") else []
    array = np.asarray(value)
    return (array.reshape(-1), [int(at) for at in lod[0]]) if lod else array


def load_inference_model(path: str, executor: Any = None, **configs: Any
                         ) -> Tuple[InferenceProgram, List[str], List[FetchTarget]]:
    """(program, names to feed, what to fetch) of what save_inference_model wrote."""
    if configs:
        raise _core.ConfigError(f"load_inference_model: {', '.join(configs)}: not supported")
    program = InferenceProgram(os.fspath(path))
    return program, program.feed_names, program.fetch_targets


def _no_filename(filename: Optional[str]) -> None:
    if filename is not None:
        raise _core.ConfigError(f"filename={filename!r}: values are saved in a folder, expected None")


def _use(program: Optional[Program]) -> Any:
    return (program if program is not None else default_main_program()).record.use()


class ScopeTensor:
    """The value of a variable; set() replaces it."""

    def __init__(self, program: Program, name: str):
        self._program, self._name = program, name

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        return np.asarray(self._program.record.use().value(self._name), dtype=dtype)

    def shape(self) -> List[int]:
        """Of the value."""
        return list(self.__array__().shape)

    def set(self, array: Any, place: Any = None) -> None:
        """Replaces the value."""
        self._program.record.use().set_value(self._name, np.asarray(array))


class TableTensor:
    """The rows 0, 1, ... of a sparse table; set() replaces them, and begins no new optimizer state."""

    def __init__(self, program: Program, table: Table):
        self._program, self._table = program, table

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        keys, rows = self._program.record.use().rows(self._table.name)
        if len(keys) != self._table.size or not np.array_equal(keys, np.arange(len(keys))):
            raise _core.ConfigError(
                f"table '{self._table.name}' has {len(keys)} of {self._table.size or 'any number of'} "
                "rows so far, as rows appear with their first use; an array needs all of them")
        return np.asarray(rows, dtype=dtype)

    def shape(self) -> List[int]:
        """Of all rows that it may have."""
        return [self._table.size, self._table.dim]

    def set(self, array: Any, place: Any = None) -> None:
        """Rows for the ids 0, 1, ..."""
        rows = np.ascontiguousarray(array, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != self._table.dim or \
                (self._table.size and len(rows) != self._table.size):
            raise _core.ConfigError(f"table '{self._table.name}' is {self.shape()}, got "
                                    f"{list(rows.shape)}")
        self._program.record.use().set_rows(self._table.name, range(len(rows)), rows)


class MeterTensor:
    """A state of an AUC; set() to zeros forgets what was seen."""

    def __init__(self, meter: Any):
        self._meter = meter

    def shape(self) -> List[int]:
        """One number for each bucket."""
        return [1, self._meter.buckets]

    _get_dims = shape

    def set(self, array: Any, place: Any = None) -> None:
        """Zeros: forgets all batches."""
        if np.any(np.asarray(array)):
            raise _core.ConfigError("the state of an AUC can only be set to zeros")
        self._meter.reset()


class ScopeVariable:
    """A variable that keeps its value between runs."""

    def __init__(self, tensor: Any):
        self._tensor = tensor

    def get_tensor(self) -> Any:
        """Its value."""
        return self._tensor


class Scope:
    """Where values are kept between runs, by name."""

    def __init__(self, program: Optional[Program] = None):
        self._program = program

    def find_var(self, name: str) -> Optional[ScopeVariable]:
        """The variable, or None."""
        program = self._program or default_main_program()
        for meter in program.record.meters:
            if name in meter.states or meter.name in name:
                return ScopeVariable(MeterTensor(meter))
        if name in program.record.tables:
            return ScopeVariable(TableTensor(program, program.record.tables[name]))
        if name in program.record.use().value_names():
            return ScopeVariable(ScopeTensor(program, name))
        return None

    def var(self, name: str) -> ScopeVariable:
        """The variable; raises where there is none."""
        found = self.find_var(name)
        if found is None:
            raise _core.ConfigError(f"no variable '{name}' keeps a value")
        return found


_global_scope = Scope()


def global_scope() -> Scope:
    """The values of the default program."""
    return _global_scope
