"""Where every function on values comes down to."""

from typing import Any, List, Sequence

import numpy as np

from argosy import _core
from argosy.dtypes import engine_name, get_default_dtype

Tensor = _core.Tensor


def apply(op: str, inputs: Sequence[Any], attrs: dict, ranks: Any = None) -> List[Any]:
    """Runs an operator on Tensors, or records it if there is a Variable among the inputs."""
    results = _core.apply(op, inputs, attrs, ranks)
    return _apply_mixed(op, inputs, attrs, ranks) if results is None else results


def apply_one(op: str, inputs: Sequence[Any], attrs: dict) -> Any:
    """The first result of apply."""
    return apply(op, inputs, attrs)[0]


def is_variable(value: Any) -> bool:
    """True for a place in a recorded program."""
    return hasattr(value, "program") and hasattr(value, "stop_gradient")


def is_value(value: Any) -> bool:
    """True for a Tensor or a Variable."""
    return isinstance(value, Tensor) or is_variable(value)


def _apply_mixed(op, inputs, attrs, ranks):
    for value in inputs:
        if is_variable(value):
            recorded = [constant(value.program, item) for item in inputs]
            return value.program.record.apply(op, recorded, attrs)
    first = next((value.dtype for value in inputs if isinstance(value, Tensor)), None)
    values = [as_tensor(value, first) for value in inputs]
    return _core.apply(op, values, attrs, ranks)


def constant(program, value):
    """Programs hold constants as float32; others are cast from it where that is exact."""
    if is_variable(value):
        return value
    array = as_array(value)
    floats = array.astype("float32")
    if array.dtype == "float32" or not np.array_equal(floats.astype(array.dtype), array):
        return array
    return program.record.apply("cast", [floats], {"to": engine_name(array.dtype)})[0]


def as_tensor(value: Any, scalar_dtype=None) -> Tensor:
    """A Tensor over what NumPy makes an array of; Python numbers take the given type."""
    if isinstance(value, Tensor):
        return value
    return Tensor(as_array(value, scalar_dtype))


def as_array(value: Any, scalar_dtype=None) -> np.ndarray:
    """An array of at least one dimension; Python floats are of the default type."""
    if isinstance(value, (bool, int, float)):
        if scalar_dtype is None:
            scalar_dtype = get_default_dtype() if isinstance(value, float) else None
        return np.array([value], dtype=scalar_dtype)
    if isinstance(value, np.ndarray) or hasattr(value, "__array__"):
        array = np.asarray(value)
    else:
        array = np.asarray(_plain(value))
        if array.dtype == np.float64:
            array = array.astype(get_default_dtype())
    return array.reshape(1) if array.ndim == 0 else array


def _plain(value):
    """Lists with Tensors inside as lists of arrays."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.numpy() if isinstance(value, Tensor) else value
