"""Types of elements: texts, as NumPy names them."""

import numpy as np

from argosy import _core

float32 = "float32"
float64 = "float64"
int32 = "int32"
int64 = "int64"
uint8 = "uint8"
bool_ = "bool"

_ENGINE = {float32: "f32", float64: "f64", int32: "i32", int64: "i64", uint8: "u8", bool_: "b8"}
_RANK = {bool_: 0, uint8: 1, int32: 2, int64: 3, float32: 4, float64: 5}
_default = float32


def dtype_name(dtype) -> str:
    """The name of a type given as a text, a Python type or a NumPy one."""
    if isinstance(dtype, str) and dtype in _ENGINE:
        return dtype
    if dtype is float:
        return _default
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = str(dtype)
    if name not in _ENGINE:
        raise _core.ConfigError(f"no type {dtype!r}, expected one of {', '.join(_ENGINE)}")
    return name


def engine_name(dtype) -> str:
    """The name that operators use: f32 for float32."""
    return _ENGINE[dtype_name(dtype)]


def is_float(dtype: str) -> bool:
    """True for float32 and float64."""
    return _RANK[dtype] >= 4


def promoted(a: str, b: str) -> str:
    """The type of a result of two: the one that holds more."""
    return a if _RANK[a] >= _RANK[b] else b


def get_default_dtype() -> str:
    """The type of floats where none is said."""
    return _default


def set_default_dtype(dtype) -> None:
    """float32 or float64."""
    global _default
    name = dtype_name(dtype)
    if not is_float(name):
        raise _core.ConfigError(f"the default type is float32 or float64, not {name}")
    _default = name
