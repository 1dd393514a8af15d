"""Tensors from nothing; Variables in static mode."""

import numpy as np

from argosy import _core
from argosy._apply import Tensor, apply_one, as_array, constant, is_value
from argosy._math import cast, named
from argosy._mode import in_static_mode
from argosy._shaping import ints
from argosy.dtypes import dtype_name, get_default_dtype, is_float


def _given(array: np.ndarray):
    """A Tensor over an array; in static mode a Variable that holds it."""
    if not in_static_mode():
        return Tensor(array)
    from argosy.static import default_main_program

    program = default_main_program()
    return program.record.apply("reshape", [constant(program, array)], {"shape": list(array.shape)})[0]


def _sizes(shape) -> list:
    if isinstance(shape, (list, tuple)):
        return [ints(size)[0] for size in shape] or [1]
    return ints(shape)


def to_tensor(data, dtype=None, place=None, stop_gradient=True):
    """A Tensor with a copy of what NumPy makes an array of."""
    if isinstance(data, Tensor):
        array = np.array(data.numpy())
    else:
        array = np.array(as_array(data))
    if dtype is not None:
        array = array.astype(dtype_name(dtype))
    if in_static_mode():
        return _given(array)
    return Tensor(array, stop_gradient=stop_gradient)


def from_numpy(array: np.ndarray) -> Tensor:
    """A Tensor over the array's memory: a change of one is a change of the other."""
    return Tensor(array)


def from_dlpack(data) -> Tensor:
    """A Tensor over the memory of another library's tensor."""
    return Tensor(data)


def full(shape, fill_value, dtype=None, name=None):
    """One number everywhere."""
    if is_value(fill_value):
        fill_value = fill_value.item()
    if dtype is None:
        dtype = ("bool" if isinstance(fill_value, bool) else
                 "int64" if isinstance(fill_value, int) else get_default_dtype())
    return named(_given(np.full(_sizes(shape), fill_value, dtype=dtype_name(dtype))), name)


def zeros(shape, dtype=None, name=None):
    """Zeros."""
    return full(shape, 0, dtype or get_default_dtype(), name)


def ones(shape, dtype=None, name=None):
    """Ones."""
    return full(shape, 1, dtype or get_default_dtype(), name)


def empty(shape, dtype=None, name=None):
    """Some numbers; zeros, in fact."""
    return zeros(shape, dtype, name)


def zeros_like(x, dtype=None, name=None):
    """Zeros of x's shape."""
    return full_like(x, 0, dtype, name)


def ones_like(x, dtype=None, name=None):
    """Ones of x's shape."""
    return full_like(x, 1, dtype, name)


empty_like = zeros_like


def full_like(x, fill_value, dtype=None, name=None):
    """One number in x's shape."""
    dtype = dtype_name(dtype) if dtype is not None else x.dtype
    if isinstance(x, Tensor):
        return named(Tensor(np.full(x.shape, fill_value, dtype=dtype)), name)
    zeros = apply_one("zeros_like", [cast(x, "float64")], {})
    return named(cast(apply_one("scale", [zeros], {"bias": float(fill_value)}), dtype), name)


def arange(start=0, end=None, step=1, dtype=None, name=None):
    """start, start + step, ... below end."""
    bounds = [value.item() if is_value(value) else value for value in (start, end, step)]
    start, end, step = bounds
    if end is None:
        start, end = 0, start
    if dtype is None:
        whole = all(isinstance(value, int) for value in (start, end, step))
        dtype = "int64" if whole else get_default_dtype()
    return named(_given(np.arange(start, end, step, dtype=dtype_name(dtype))), name)


range = arange


def linspace(start, stop, num, dtype=None, name=None):
    """Numbers in even steps, both ends among them."""
    values = [value.item() if is_value(value) else value for value in (start, stop, num)]
    array = np.linspace(values[0], values[1], int(values[2]))
    return named(_given(array.astype(dtype_name(dtype or get_default_dtype()))), name)


def eye(num_rows, num_columns=None, dtype=None, name=None):
    """Ones on the diagonal."""
    return named(_given(np.eye(num_rows, num_columns, dtype=dtype_name(dtype or "float32"))), name)


def _random(tensor: Tensor, dtype, name):
    if in_static_mode():
        raise _core.ConfigError("random numbers are drawn in dynamic mode only: a recorded program "
                                "has dropout and the first values of parameters")
    dtype = dtype_name(dtype or get_default_dtype())
    return named(cast(tensor, dtype), name)


def uniform(shape, dtype=None, min=-1.0, max=1.0, seed=0, name=None):
    """Numbers drawn evenly from [min, max)."""
    _no_seed(seed)
    return _random(_core.uniform(_sizes(shape), float(min), float(max)), dtype, name)


def rand(shape, dtype=None, name=None):
    """Numbers drawn evenly from [0, 1)."""
    return uniform(shape, dtype, 0.0, 1.0, name=name)


def normal(mean=0.0, std=1.0, shape=None, name=None):
    """Numbers drawn from a normal distribution."""
    return _random(_core.normal(_sizes(shape if shape is not None else [1]), float(mean),
                                float(std)), None, name)


def gaussian(shape, mean=0.0, std=1.0, seed=0, dtype=None, name=None):
    """Numbers drawn from a normal distribution."""
    _no_seed(seed)
    return _random(_core.normal(_sizes(shape), float(mean), float(std)), dtype, name)


def randn(shape, dtype=None, name=None):
    """Numbers drawn from the standard normal distribution."""
    return gaussian(shape, dtype=dtype, name=name)


standard_normal = randn


def randint(low=0, high=None, shape=(1,), dtype=None, name=None):
    """Whole numbers drawn evenly from [low, high)."""
    if high is None:
        low, high = 0, low
    return _random(_core.integers(_sizes(shape), int(low), int(high)), dtype or "int64", name)


def randperm(n, dtype="int64", name=None):
    """0 to n - 1 in a random order."""
    return _random(_core.permutation(int(n)), dtype, name)


def bernoulli(x, name=None):
    """1 with the probability that x says, else 0."""
    drawn = _core.uniform(x.shape, 0.0, 1.0)
    return named(cast(drawn < cast(x, "float32"), x.dtype), name)


def _no_seed(seed):
    if seed:
        raise _core.ConfigError("seed= of a single function is not supported: call seed() before")


def seed(seed: int) -> int:
    """All randomness from here on depends on this number."""
    _core.seed(int(seed))
    return seed


def current_seed() -> int:
    """The number that seed was called with last; 0 at first."""
    return _core.random_state()[0]


def get_rng_state() -> list:
    """Where randomness stands."""
    return list(_core.random_state())


def set_rng_state(state) -> None:
    """Goes back to a state of get_rng_state."""
    _core.set_random_state(*state)


def is_tensor(x) -> bool:
    """True for a Tensor or a Variable."""
    return is_value(x)


def is_floating_point(x) -> bool:
    """True for float32 and float64."""
    return is_float(x.dtype)


def is_integer(x) -> bool:
    """True for int32, int64 and uint8."""
    return x.dtype in ("int32", "int64", "uint8")
