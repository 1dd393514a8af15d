"""Rows of Python values as feeds."""

from typing import Any, Dict, Iterable, Sequence

import numpy as np

from argosy import ConfigError
from argosy.static import LoDTensor, default_main_program


class DataFeeder:
    """feed(rows) gives arrays by variable; each row has a value for each variable."""

    def __init__(self, feed_list: Sequence[Any], place: Any = None, program: Any = None):
        program = program or default_main_program()
        self._vars = [program.var(v) if isinstance(v, str) else v for v in feed_list]

    def feed(self, iterable: Iterable[Sequence[Any]]) -> Dict[str, Any]:
        """A batch."""
        rows = list(iterable)
        for row in rows:
            if len(row) != len(self._vars):
                raise ConfigError(f"feed: a row has {len(row)} values, expected one for each of "
                                  f"{', '.join(v.name for v in self._vars)}")
        return {v.name: _column(v, [row[i] for row in rows]) for i, v in enumerate(self._vars)}


def _column(variable: Any, values: Sequence[Any]) -> Any:
    if variable.lod_level > 0:
        parts = [np.asarray(value, dtype=variable.dtype).reshape(-1) for value in values]
        offsets = [0] + [int(n) for n in np.cumsum([len(part) for part in parts])]
        return LoDTensor(np.concatenate(parts).reshape(-1, 1), [offsets])
    array = np.asarray(values, dtype=variable.dtype)
    inner = variable.shape[1:]
    if -1 in inner or list(array.shape[1:]) == inner:
        return array
    width = int(np.prod(inner, dtype=np.int64))
    if array.size != len(values) * width:
        raise ConfigError(f"feed: values of '{variable.name}' are {list(array.shape[1:])}, "
                          f"expected {inner}")
    return array.reshape([len(values)] + inner)
