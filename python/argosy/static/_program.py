"""Programs that are recorded first and run later."""

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np

from argosy import _core
from argosy.static._record import Parameter, ProgramRecord, Table, Variable


class TableView:
    """A table of a program that is in use: len() counts its rows, keys and rows are arrays."""

    def __init__(self, program: "Program", table: Table):
        self.name, self.dim = table.name, table.dim
        self.keys, self.rows = program.record.use().rows(table.name)

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


class Program:
    """A straight line of operators on variables."""

    def __init__(self) -> None:
        self.random_seed = 0
        self.record = ProgramRecord(self)  # for the modules of this package
        self.for_test = False
        self.startup_of: Optional["Program"] = None  # whose parameters begin when this one is run
        self._fleet_opt: Dict[str, Any] = {}

    def clone(self, for_test: bool = False) -> "Program":
        """For tests: the same program, run without training. Else a copy that can be extended."""
        if not for_test:
            raise _core.ConfigError("clone(for_test=False): a program is copied for tests only; "
                                    "record it again under program_guard")
        copy = Program.__new__(Program)
        copy.__dict__.update(self.__dict__)
        copy.for_test = True
        return copy

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
        return self.record.parameters()

    def list_vars(self) -> Iterator[Variable]:
        """Every variable."""
        return iter(list(self.record.variables.values()))

    def var(self, name: str) -> Variable:
        """The variable of this name."""
        if name in self.record.variables:
            return self.record.variables[name]
        raise _core.ConfigError(f"the program has no variable '{name}'")

    def has_var(self, name: str) -> bool:
        """True if there is a variable of this name."""
        return name in self.record.variables

    def tables(self) -> Dict[str, "TableView"]:
        """The tables of rows that it looks up, by name; as they are now."""
        return {name: TableView(self, table) for name, table in self.record.tables.items()}

    def to_string(self, throw_on_error: bool = False, with_details: bool = False) -> str:
        """Its text."""
        return self.record.recorder.text()

    def __repr__(self) -> str:
        return self.to_string()

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(self.to_string())}</pre>"


_main = Program()
_startup = Program()
_startup.startup_of = _main


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
    _startup.startup_of = main_program
    try:
        yield
    finally:
        _main, _startup = before


def data(name: str, shape: Sequence[Optional[int]], dtype: str = "float32",
         lod_level: int = 0) -> Variable:
    """A variable that is fed with each batch; None and -1 are sizes known only then."""
    sizes = [-1 if size is None else int(size) for size in shape]
    return _main.record.data(name, sizes, dtype, lod_level)
