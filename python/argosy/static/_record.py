"""What is recorded of a program: its variables, and what is made of them."""

import os
from typing import TYPE_CHECKING, Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from argosy import _core, unique_name
from argosy._check_nan import check_nan
from argosy._operators import Operators
from argosy.dtypes import engine_name

if TYPE_CHECKING:
    from argosy.static._program import Program

_DTYPES = {"f32": "float32", "f64": "float64", "i32": "int32", "i64": "int64", "u8": "uint8",
           "b8": "bool"}
_LARGEST_CONSTANT = 4096


class Variable(Operators):
    """A place in a recorded program: an input, a parameter or the result of an operator."""

    def __init__(self, program: "Program", number: int, name: str, *, stop_gradient: bool = False,
                 persistable: bool = False, lod_level: int = 0, is_data: bool = False):
        self.program = program
        self.is_data = is_data  # fed with each batch
        self.name = name
        self.stop_gradient = stop_gradient
        self.persistable = persistable
        self.lod_level = lod_level
        self.number = number  # in the engine's program
        self.lookups: List["Lookup"] = []  # of an input: the tables that it is looked up in
        self.rows_of: Optional[RowsOf] = None  # of rows: what they were looked up by

    @property
    def shape(self) -> List[int]:
        """Its sizes; -1 where a size is known only at run time."""
        return self.program.record.recorder.shape(self.number)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """Such as "float32"."""
        return _DTYPES[self.program.record.recorder.dtype(self.number)]

    @property
    def block(self) -> "Program":
        """The program, which has no blocks inside."""
        return self.program

    @property
    def size(self) -> int:
        """How many elements it has, or -1."""
        sizes = self.shape
        return -1 if -1 in sizes else int(np.prod(sizes, dtype=np.int64))

    def numpy(self) -> np.ndarray:
        """Raises: a place has no numbers before the program is run."""
        raise _core.ConfigError(f"'{self.name}' is recorded and has no value yet: fetch it with "
                                "exe.run(..., fetch_list=[...])")

    def __bool__(self) -> bool:
        raise _core.ConfigError(f"'{self.name}' is recorded and has no truth value yet; a program "
                                "cannot branch on what it computes")

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        kind = "persist trainable param" if isinstance(self, Parameter) else "var"
        return f"{kind} {self.name} : shape{tuple(self.shape)} dtype({self.dtype})"

    to_string = __repr__


class Parameter(Variable):
    """A variable that is trained and kept from run to run."""

    def __init__(self, program: "Program", number: int, name: str, attr: Any, trainable: bool):
        super().__init__(program, number, name, stop_gradient=not trainable, persistable=True)
        self.attr = attr
        self.trainable = trainable

    @property
    def optimize_attr(self) -> dict:
        """What the optimizer multiplies its learning rate by."""
        return {"learning_rate": getattr(self.attr, "learning_rate", 1.0)}

    @property
    def regularizer(self) -> Any:
        """Its own regularizer, or None."""
        return getattr(self.attr, "regularizer", None)


class Lookup:
    """One use of a fed variable of ids: which table, and whether its rows are pooled."""

    def __init__(self, table: str, dim: int, size: int, init: str, pool: str,
                 padding: Optional[int]):
        self.table, self.dim, self.size = table, dim, size
        self.init, self.pool, self.padding = init, pool, padding


class RowsOf(NamedTuple):
    """Where rows come from, so that they can be looked up again, pooled."""

    ids: Variable
    lookup: Lookup
    attr: Any
    entry: str


class Table:
    """Rows by key that a program looks up; they live in tables of their own, not in arrays."""

    def __init__(self, name: str, dim: int, size: int, attr: Any, entry: str):
        self.name, self.dim, self.size, self.attr, self.entry = name, dim, size, attr, entry
        self.trainable = getattr(attr, "trainable", True)
        self.optimize_attr = {"learning_rate": getattr(attr, "learning_rate", 1.0)}
        self.regularizer = getattr(attr, "regularizer", None)


class Minimized:
    """What minimize() has asked for."""

    def __init__(self, optimizer: Any, loss: Variable, frozen: Sequence[str]):
        self.optimizer, self.loss, self.frozen = optimizer, loss, list(frozen)


class OptimizeOp:
    """One parameter's update, as minimize() returns them."""

    def __init__(self, type: str, param: str):
        self.type, self.param = type, param

    def __repr__(self) -> str:
        return f"{self.type} {self.param} {self.param}@GRAD"


class Gradient:
    """The gradient of a parameter, by its name."""

    def __init__(self, param: str):
        self.name = param + "@GRAD"

    def __repr__(self) -> str:
        return self.name


class ProgramRecord:
    """What a program and its clones for tests share. For the modules of this package: scripts use
    Program."""

    def __init__(self, program: "Program") -> None:
        self.program = program  # not a clone
        self.recorder = _core.Recorder()
        self.variables: Dict[str, Variable] = {}
        self.tables: Dict[str, Table] = {}
        self.meters: List[Any] = []  # static/_metrics.py
        self.minimized: Optional[Minimized] = None
        self.fleet: Any = None  # that has minimized it
        self._training: Any = None
        self._constants = 0

    def parameters(self) -> List[Parameter]:
        """Every parameter, in the order in which they were asked for."""
        return [v for v in self.variables.values() if isinstance(v, Parameter)]

    def data(self, name: str, shape: Sequence[int], dtype: str, lod_level: int) -> Variable:
        """An input that is fed with each batch."""
        known = self.variables.get(name)
        number = self.recorder.input(name, list(shape), engine_name(dtype))
        if known is not None:
            return known
        return self._add(Variable(self.program, number, name, stop_gradient=True,
                                  lod_level=lod_level, is_data=True))

    def parameter(self, name: str, shape: Sequence[int], dtype: str, init: str, trainable: bool,
                  attr: Any) -> Variable:
        """The parameter of this name."""
        number = self.recorder.parameter(name, list(shape), engine_name(dtype), init)
        if name in self.variables:
            return self.variables[name]
        return self._add(Parameter(self.program, number, name, attr, trainable))

    def state(self, name: str, shape: Sequence[int], dtype: str, init: str) -> Variable:
        """A value that the program itself replaces, step by step."""
        number = self.recorder.state(name, list(shape), engine_name(dtype), init)
        if name in self.variables:
            return self.variables[name]
        return self._add(Variable(self.program, number, name, stop_gradient=True, persistable=True))

    def update(self, state: Variable, following: Variable) -> None:
        """Says what a state becomes."""
        self.recorder.update(state.number, following.number)

    def apply(self, op: str, inputs: Sequence[Any], attrs: dict) -> List[Variable]:
        """The results of an operator."""
        values = [self._value(value, op) for value in inputs]
        return [self._result(number, op)
                for number in self.recorder.apply(op, [v.number for v in values], attrs)]

    def _result(self, number: int, op: str) -> Variable:
        name = unique_name.generate(f"{op}.tmp")
        self.recorder.name(number, name)
        return self._add(Variable(self.program, number, name))

    def rename(self, variable: Variable, name: str) -> None:
        """Gives a variable another name."""
        self.recorder.name(variable.number, name)
        del self.variables[variable.name]
        variable.name = name
        self._add(variable)

    def _add(self, variable: Variable) -> Variable:
        self.variables[variable.name] = variable
        return variable

    def _value(self, value: Any, op: str) -> Variable:
        """A variable of this program; numbers become constants of it."""
        if isinstance(value, Variable):
            if value.program.record is not self:
                raise _core.ConfigError(f"{op}: '{value.name}' belongs to another program")
            return value
        array = np.asarray(value, dtype=None if hasattr(value, "dtype") else np.float32)
        if array.dtype != np.float32 or array.size > _LARGEST_CONSTANT:
            raise _core.ConfigError(
                f"{op}: a {array.dtype} array of {array.size} numbers cannot be a constant of a "
                f"program, expected at most {_LARGEST_CONSTANT} of float32; feed it instead")
        self._constants += 1
        numbers = ", ".join(repr(float(number)) for number in array.ravel())
        return self.state(f"constant_{self._constants}", array.shape or (1,), "float32",
                          f"assign({numbers})")

    def lookup(self, ids: Variable, lookup: Lookup, attr: Any, entry: str) -> Variable:
        """The rows of a fed variable's ids, [batch, dim]."""
        known = self.tables.get(lookup.table)
        if known is not None and (known.dim, known.size) != (lookup.dim, lookup.size):
            raise _core.ConfigError(
                f"table '{lookup.table}' has {known.size} rows of {known.dim} floats, now asked "
                f"for as {lookup.size} rows of {lookup.dim}")
        if known is None:
            self.tables[lookup.table] = Table(lookup.table, lookup.dim, lookup.size, attr, entry)
        ids.lookups.append(lookup)
        number = self.recorder.embedding(ids.name, lookup.table, lookup.dim, lookup.init,
                                         lookup.pool, lookup.padding)
        return self._result(number, "embedding")

    def minimize(self, optimizer: Any, loss: Variable, parameters: Any = None,
                 no_grad_set: Any = None) -> Tuple[List[OptimizeOp], List[Tuple[Any, Gradient]]]:
        """Notes what is trained; returns (optimize_ops, params_grads)."""
        if loss.size != 1 or loss.dtype not in ("float32", "float64"):
            raise _core.ConfigError(f"minimize: a loss is one float, '{loss.name}' is {loss.dtype}"
                                    f"{loss.shape}, of {self.recorder.line(loss.number)}")
        if self._training is not None:
            raise _core.ConfigError("minimize: comes before the program is first run, not after")
        left_out = _names(no_grad_set)
        wanted = _names(parameters) if parameters is not None else None
        frozen = [p.name for p in self.parameters()
                  if not p.trainable or p.name in left_out
                  or (wanted is not None and p.name not in wanted)]
        self.minimized = Minimized(optimizer, loss, frozen)
        trained = [p for p in self.parameters() if p.name not in frozen]
        trained += list(self.tables.values())
        rule = optimizer.settings()["rule"].split("(")[0]
        return ([OptimizeOp(rule, p.name) for p in trained],
                [(p, Gradient(p.name)) for p in trained])

    def spec(self, threads: Optional[int] = None) -> dict:
        """What the engine needs to train it, or to run it; threads: the most it may ever use."""
        threads = threads or os.cpu_count() or 1
        metrics = [(v.name, v.number) for v in self.variables.values()
                   if v.size == 1 and v.dtype == "float32" and not v.persistable
                   and self.minimized is not None and v is not self.minimized.loss]
        spec = {"metrics": metrics, "seed": self._seed(), "threads": threads,
                "check_nan": check_nan(), "meters": [meter.spec() for meter in self.meters],
                "limits": {v.name: min(use.size for use in v.lookups if use.size)
                           for v in self.variables.values()
                           if any(use.size for use in v.lookups)}}
        if self.minimized is None:
            return spec
        optimizer = self.minimized.optimizer
        spec["loss"] = self.minimized.loss.number
        spec["frozen"] = self.minimized.frozen
        spec["optimizer"] = optimizer.settings()
        spec["tables"] = self._table_options(optimizer)
        return spec

    def _table_options(self, optimizer: Any) -> dict:
        options: Dict[str, dict] = {}
        trained = [p for p in self.parameters() if p.name not in self.minimized.frozen]
        for param in trained + list(self.tables.values()):
            own = {}
            multiplier = param.optimize_attr["learning_rate"]
            if multiplier != 1.0:
                own["learning_rate"] = _scaled(optimizer.settings()["learning_rate"], multiplier,
                                               param.name)
            if param.regularizer is not None:
                own["regularizer"] = param.regularizer._text()
            if isinstance(param, Table):
                own.update(size=param.size, entry=param.entry, rule=optimizer.rows_rule())
            if own:
                options[param.name] = own
        return options

    def _seed(self) -> int:
        from argosy._creation import current_seed

        return self.program.random_seed or current_seed()

    def begin_anew(self) -> None:
        """First values for its parameters: of no effect where servers hold them."""
        if self.fleet is None:
            self._training = None

    def use(self) -> Any:
        """The engine's side of it; made when it is first run."""
        if self._training is None:
            self._training = (self.fleet._use() if self.fleet is not None
                              else _core.local_training(self.recorder, self.spec()))
        return self._training


def _names(variables: Any) -> set:
    return {v if isinstance(v, str) else v.name for v in variables or ()}


def _scaled(schedule: str, multiplier: float, name: str) -> str:
    try:
        return repr(float(schedule) * multiplier)
    except ValueError:
        raise _core.ConfigError(f"parameter '{name}' multiplies the learning rate by {multiplier}, "
                                f"which goes with a constant one, not with {schedule}") from None
