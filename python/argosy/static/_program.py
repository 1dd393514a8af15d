"""Programs that are recorded first and run later."""

import contextlib
import os
from typing import Any, Dict, Iterator, List, Optional, Sequence, Tuple

import numpy as np

from argosy import _core, unique_name
from argosy._operators import Operators
from argosy.dtypes import engine_name

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
        self._number = number
        self._lookups: List["Lookup"] = []  # of an input: the tables that it is looked up in

    @property
    def shape(self) -> List[int]:
        """Its sizes; -1 where a size is known only at run time."""
        return self.program._recorder.shape(self._number)

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """Such as "float32"."""
        return _DTYPES[self.program._recorder.dtype(self._number)]

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


class Table:
    """Rows by key that a program looks up; they live in tables of their own, not in arrays."""

    def __init__(self, name: str, dim: int, size: int, attr: Any, entry: str):
        self.name, self.dim, self.size, self.attr, self.entry = name, dim, size, attr, entry
        self.trainable = getattr(attr, "trainable", True)
        self.optimize_attr = {"learning_rate": getattr(attr, "learning_rate", 1.0)}
        self.regularizer = getattr(attr, "regularizer", None)


class TableView:
    """A table of a program that is in use: len() counts its rows, keys and rows are arrays."""

    def __init__(self, program: "Program", table: Table):
        self.name, self.dim = table.name, table.dim
        self.keys, self.rows = program._use().rows(table.name)

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, key: int) -> np.ndarray:
        at = np.searchsorted(self.keys, key)
        if at == len(self.keys) or self.keys[at] != key:
            raise KeyError(key)
        return self.rows[at]

    def __repr__(self) -> str:
        return f"table {self.name}: {len(self)} rows of {self.dim} floats"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{key}</td>" + "".join(f"<td>{value:.4g}</td>" for value in row[:8]) + "</tr>"
            for key, row in zip(self.keys[:10], self.rows[:10]))
        return f"<p>{self!r}</p><table><tr><th>key</th><th>row</th></tr>{rows}</table>"


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


class Program:
    """A straight line of operators on variables."""

    def __init__(self) -> None:
        self.random_seed = 0
        self._recorder = _core.Recorder()
        self._variables: Dict[str, Variable] = {}
        self._tables: Dict[str, Table] = {}
        self._meters: List[Any] = []  # static/_metrics.py
        self._minimized: Optional[Minimized] = None
        self._fleet: Any = None  # that has minimized it
        self._training: Any = None
        self._constants = 0
        self._root = self  # of a clone for tests: the program whose parameters it uses
        self._startup_of: Optional["Program"] = None
        self._fleet_opt: Dict[str, Any] = {}

    def clone(self, for_test: bool = False) -> "Program":
        """For tests: the same program, run without training. Else a copy that can be extended."""
        if not for_test:
            raise _core.ConfigError("clone(for_test=False): a program is copied for tests only; "
                                    "record it again under program_guard")
        copy = Program.__new__(Program)
        copy.__dict__.update(self.__dict__)
        copy._root = self._root
        return copy

    @property
    def _for_test(self) -> bool:
        return self._root is not self

    def global_block(self) -> "Program":
        """Itself: programs have one block."""
        return self

    @property
    def blocks(self) -> List["Program"]:
        """Itself: programs have one block."""
        return [self]

    def current_block(self) -> "Program":
        """Itself: programs have one block."""
        return self

    def all_parameters(self) -> List[Parameter]:
        """Every parameter, in the order in which they were asked for."""
        return [v for v in self._variables.values() if isinstance(v, Parameter)]

    def list_vars(self) -> Iterator[Variable]:
        """Every variable."""
        return iter(list(self._variables.values()))

    def var(self, name: str) -> Variable:
        """The variable of this name."""
        if name in self._variables:
            return self._variables[name]
        raise _core.ConfigError(f"the program has no variable '{name}'")

    def has_var(self, name: str) -> bool:
        """True if there is a variable of this name."""
        return name in self._variables

    def tables(self) -> Dict[str, "TableView"]:
        """The tables of rows that it looks up, by name; as they are now."""
        return {name: TableView(self, table) for name, table in self._root._tables.items()}

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """Its text."""
        return self._root._recorder.text()

    def __repr__(self) -> str:
        return self.to_string()

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.to_string())}</pre>"

    def _data(self, name: str, shape: Sequence[int], dtype: str, lod_level: int) -> Variable:
        known = self._variables.get(name)
        number = self._recorder.input(name, list(shape), engine_name(dtype))
        if known is not None:
            return known
        return self._add(Variable(self, number, name, stop_gradient=True, lod_level=lod_level,
                                  is_data=True))

    def _parameter(self, name: str, shape: Sequence[int], dtype: str, init: str, trainable: bool,
                   attr: Any) -> Variable:
        number = self._recorder.parameter(name, list(shape), engine_name(dtype), init)
        if name in self._variables:
            return self._variables[name]
        return self._add(Parameter(self, number, name, attr, trainable))

    def _state(self, name: str, shape: Sequence[int], dtype: str, init: str) -> Variable:
        number = self._recorder.state(name, list(shape), engine_name(dtype), init)
        if name in self._variables:
            return self._variables[name]
        return self._add(Variable(self, number, name, stop_gradient=True, persistable=True))

    def _update(self, state: Variable, following: Variable) -> None:
        self._recorder.update(state._number, following._number)

    def _apply(self, op: str, inputs: Sequence[Any], attrs: dict) -> List[Variable]:
        values = [self._value(value, op) for value in inputs]
        return [self._result(number, op)
                for number in self._recorder.apply(op, [v._number for v in values], attrs)]

    def _result(self, number: int, op: str) -> Variable:
        name = unique_name.generate(f"{op}.tmp")
        self._recorder.name(number, name)
        return self._add(Variable(self, number, name))

    def _rename(self, variable: Variable, name: str) -> None:
        self._recorder.name(variable._number, name)
        del self._variables[variable.name]
        variable.name = name
        self._add(variable)

    def _add(self, variable: Variable) -> Variable:
        self._variables[variable.name] = variable
        return variable

    def _value(self, value: Any, op: str) -> Variable:
        """A variable of this program; numbers become constants of it."""
        if isinstance(value, Variable):
            if value.program._recorder is not self._recorder:
                raise _core.ConfigError(f"{op}: '{value.name}' belongs to another program")
            return value
        array = np.asarray(value, dtype=None if hasattr(value, "dtype") else np.float32)
        if array.dtype != np.float32 or array.size > _LARGEST_CONSTANT:
            raise _core.ConfigError(
                f"{op}: a {array.dtype} array of {array.size} numbers cannot be a constant of a "
                f"program, expected at most {_LARGEST_CONSTANT} of float32; feed it instead")
        self._constants += 1
        numbers = ", ".join(repr(float(number)) for number in array.ravel())
        return self._state(f"constant_{self._constants}", array.shape or (1,), "float32",
                           f"assign({numbers})")

    def _lookup(self, ids: Variable, lookup: Lookup, attr: Any, entry: str) -> Variable:
        """The rows of a fed variable's ids, [batch, dim]."""
        known = self._tables.get(lookup.table)
        if known is not None and (known.dim, known.size) != (lookup.dim, lookup.size):
            raise _core.ConfigError(
                f"table '{lookup.table}' has {known.size} rows of {known.dim} floats, now asked "
                f"for as {lookup.size} rows of {lookup.dim}")
        if known is None:
            self._tables[lookup.table] = Table(lookup.table, lookup.dim, lookup.size, attr, entry)
        ids._lookups.append(lookup)
        number = self._recorder.embedding(ids.name, lookup.table, lookup.dim, lookup.init,
                                          lookup.pool, lookup.padding)
        return self._result(number, "embedding")

    def _minimize(self, optimizer: Any, loss: Variable, parameters: Any = None,
                  no_grad_set: Any = None) -> Tuple[List[OptimizeOp], List[Tuple[Any, Gradient]]]:
        """Notes what is trained; returns (optimize_ops, params_grads)."""
        if loss.size != 1 or loss.dtype not in ("float32", "float64"):
            raise _core.ConfigError(f"minimize: a loss is one float, '{loss.name}' is {loss.dtype}"
                                    f"{loss.shape}, of {self._recorder.line(loss._number)}")
        if self._training is not None:
            raise _core.ConfigError("minimize: comes before the program is first run, not after")
        left_out = _names(no_grad_set)
        wanted = _names(parameters) if parameters is not None else None
        frozen = [p.name for p in self.all_parameters()
                  if not p.trainable or p.name in left_out
                  or (wanted is not None and p.name not in wanted)]
        self._minimized = Minimized(optimizer, loss, frozen)
        trained = [p for p in self.all_parameters() if p.name not in frozen]
        trained += list(self._tables.values())
        rule = optimizer._rule().split("(")[0]
        return ([OptimizeOp(rule, p.name) for p in trained],
                [(p, Gradient(p.name)) for p in trained])

    def _spec(self, threads: Optional[int] = None) -> dict:
        """What the engine needs to train it, or to run it; threads: the most it may ever use."""
        threads = threads or os.cpu_count() or 1
        metrics = [(v.name, v._number) for v in self._variables.values()
                   if v.size == 1 and v.dtype == "float32" and not v.persistable
                   and self._minimized is not None and v is not self._minimized.loss]
        spec = {"metrics": metrics, "seed": self._seed(), "threads": threads,
                "meters": [meter._spec() for meter in self._meters],
                "limits": {v.name: min(use.size for use in v._lookups if use.size)
                           for v in self._variables.values()
                           if any(use.size for use in v._lookups)}}
        if self._minimized is None:
            return spec
        optimizer = self._minimized.optimizer
        spec["loss"] = self._minimized.loss._number
        spec["frozen"] = self._minimized.frozen
        spec["optimizer"] = {"rule": optimizer._rule(), "learning_rate": optimizer._schedule(),
                             "regularizer": optimizer._regularizer(), "clip": optimizer._clip()}
        spec["tables"] = self._table_options(optimizer)
        return spec

    def _table_options(self, optimizer: Any) -> dict:
        options: Dict[str, dict] = {}
        trained = [p for p in self.all_parameters() if p.name not in self._minimized.frozen]
        for param in trained + list(self._tables.values()):
            own = {}
            multiplier = param.optimize_attr["learning_rate"]
            if multiplier != 1.0:
                own["learning_rate"] = _scaled(optimizer._schedule(), multiplier, param.name)
            if param.regularizer is not None:
                own["regularizer"] = param.regularizer._text()
            if isinstance(param, Table):
                own.update(size=param.size, entry=param.entry, rule=optimizer._rows_rule(optimizer._rule()))
            if own:
                options[param.name] = own
        return options

    def _seed(self) -> int:
        from argosy._creation import current_seed

        return self.random_seed or current_seed()

    def _begin_anew(self) -> None:
        """First values for its parameters: of no effect where servers hold them."""
        if self._fleet is None:
            self._training = None

    def _use(self) -> Any:
        """The engine's side of this program; made when it is first run."""
        root = self._root
        if root._training is None:
            if root._fleet is not None:
                root._training = root._fleet._use()
            else:
                root._training = _core.local_training(root._recorder, root._spec())
        return root._training


def _names(variables: Any) -> set:
    return {v if isinstance(v, str) else v.name for v in variables or ()}


def _scaled(schedule: str, multiplier: float, name: str) -> str:
    try:
        return repr(float(schedule) * multiplier)
    except ValueError:
        raise _core.ConfigError(f"parameter '{name}' multiplies the learning rate by {multiplier}, "
                                f"which goes with a constant one, not with {schedule}") from None


_main = Program()
_startup = Program()
_startup._startup_of = _main


def default_main_program() -> Program:
    """The program that functions record into."""
    return _main


def default_startup_program() -> Program:
    """The program that gives the parameters of the main one their first values."""
    return _startup


@contextlib.contextmanager
def program_guard(main_program: Program, startup_program: Optional[Program] = None):
    """Lets functions record into another program."""
    global _main, _startup
    before = _main, _startup
    _main = main_program
    _startup = startup_program if startup_program is not None else Program()
    _startup._startup_of = main_program
    try:
        yield
    finally:
        _main, _startup = before


def data(name: str, shape: Sequence[Optional[int]], dtype: str = "float32",
         lod_level: int = 0) -> Variable:
    """A variable that is fed with each batch; None and -1 are sizes known only then."""
    sizes = [-1 if size is None else int(size) for size in shape]
    return _main._data(name, sizes, dtype, lod_level)
