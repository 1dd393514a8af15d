"""Arithmetic, comparisons and reductions on Tensors and Variables."""

import math as _math
from typing import Any, Optional, Sequence, Union

import numpy as np

from argosy import _core
from argosy._apply import Tensor, apply_one, as_array, is_value, is_variable
from argosy.dtypes import dtype_name, engine_name, get_default_dtype, is_float, promoted

Axis = Union[None, int, Sequence[int]]


def named(value: Any, name: Optional[str]) -> Any:
    """The value under this name, if there is one."""
    if name is None:
        return value
    if isinstance(value, Tensor):
        value.name = name
    else:
        value.program.record.rename(value, name)
    return value


def cast(x, dtype):
    """x as another type."""
    wanted = dtype_name(dtype)
    if is_variable(x) and not hasattr(x, "number"):
        return x.astype(dtype)  # a metric over many batches
    return x if x.dtype == wanted else apply_one("cast", [x], {"to": engine_name(wanted)})


def as_operand(x):
    return x if is_value(x) else Tensor(as_array(x))


def _operands(x, y):
    """Both as values (or arrays that become constants) of one type."""
    if not is_value(x):
        y, x = _operands(y, x) if is_value(y) else (as_operand(y), as_operand(x))
        return x, y
    if isinstance(y, (bool, int, float, np.number, np.bool_)) and not is_value(y):
        if isinstance(y, (float, np.floating)) and not is_float(x.dtype):
            x = cast(x, get_default_dtype())
        return x, np.array([y], dtype=x.dtype)
    if not is_value(y):
        y = as_operand(y)
    if x.dtype == y.dtype:
        return x, y
    dtype = promoted(x.dtype, y.dtype)
    return cast(x, dtype), cast(y, dtype)


def _cast_any(x, dtype):
    """A value or an array as another type."""
    return cast(x, dtype) if is_value(x) else x.astype(dtype)


def _numbers(x, y):
    """Operands of arithmetic, which has no bool and no uint8."""
    x, y = _operands(x, y)
    if x.dtype in ("bool", "uint8"):
        return _cast_any(x, "int64"), _cast_any(y, "int64")
    return x, y


def _floats(x, y):
    """Operands of what whole numbers do not have."""
    x, y = _numbers(x, y)
    if is_float(str(x.dtype)):
        return x, y
    return _cast_any(x, get_default_dtype()), _cast_any(y, get_default_dtype())


def _scales(x, y) -> bool:
    """True for a float value and a plain number, which need no array."""
    return (isinstance(y, (int, float)) and not isinstance(y, bool) and is_value(x)
            and is_float(x.dtype))


def _binary(op: str, x, y, name=None):
    x, y = _numbers(x, y)
    return named(apply_one(op, [x, y], {}), name)


def add(x, y, name=None):
    """x + y."""
    if _scales(x, y):
        return named(apply_one("scale", [x], {"bias": float(y)}), name)
    return _binary("add", x, y, name)


def subtract(x, y, name=None):
    """x - y."""
    if _scales(x, y):
        return named(apply_one("scale", [x], {"bias": -float(y)}), name)
    return _binary("sub", x, y, name)


def multiply(x, y, name=None):
    """x * y."""
    if _scales(x, y):
        return named(apply_one("scale", [x], {"scale": float(y)}), name)
    return _binary("mul", x, y, name)


def divide(x, y, name=None):
    """x / y, as floats."""
    if _scales(x, y) and y != 0:
        return named(apply_one("scale", [x], {"scale": 1.0 / y}), name)
    x, y = _floats(x, y)
    return named(apply_one("div", [x, y], {}), name)


def binary_floats(op: str, x, y):
    x, y = _floats(x, y)
    return apply_one(op, [x, y], {})


def floor_divide(x, y, name=None):
    """x // y."""
    return _binary("floor_divide", x, y, name)


def remainder(x, y, name=None):
    """x % y, with the sign of y."""
    return _binary("remainder", x, y, name)


mod = floor_mod = remainder


def maximum(x, y, name=None):
    """The larger of each pair."""
    return _binary("maximum", x, y, name)


def minimum(x, y, name=None):
    """The smaller of each pair."""
    return _binary("minimum", x, y, name)


fmax, fmin = maximum, minimum


def pow(x, y, name=None):
    """x to the power of y, a number or a value."""
    if _scales(x, y):
        if y == 2:
            return named(apply_one("square", [x], {}), name)
        return named(apply_one("pow", [x], {"factor": float(y)}), name)
    x, y = _numbers(x, y)
    dtype = str(x.dtype)
    if is_float(dtype):
        return named(apply_one("power", [x, y], {}), name)
    exact = apply_one("power", [_cast_any(x, "float64"), _cast_any(y, "float64")], {})
    return named(cast(apply_one("round", [exact], {}), dtype), name)


def _comparison(op):
    def compare(x, y, name=None):
        x, y = _operands(x, y)
        return named(apply_one(op, [x, y], {}), name)

    compare.__doc__ = f"{op.replace('_', ' ')}, for each pair: a bool."
    return compare


equal = _comparison("equal")
not_equal = _comparison("not_equal")
less_than = _comparison("less")
less_equal = _comparison("less_equal")
greater_than = _comparison("greater")
greater_equal = _comparison("greater_equal")


def logical_not(x, out=None, name=None):
    """True where x is false."""
    _no_out(out)
    x = cast(x, "bool")
    return named(apply_one("equal", [x, np.array([False])], {}), name)


def logical_and(x, y, out=None, name=None):
    """True where both are."""
    _no_out(out)
    return named(apply_one("where", [cast(x, "bool"), cast(as_operand(y), "bool"),
                                     np.array([False])], {}), name)


def logical_or(x, y, out=None, name=None):
    """True where one is."""
    _no_out(out)
    return named(apply_one("where", [cast(x, "bool"), np.array([True]),
                                     cast(as_operand(y), "bool")], {}), name)


def logical_xor(x, y, out=None, name=None):
    """True where exactly one is."""
    _no_out(out)
    return named(apply_one("not_equal", [cast(x, "bool"), cast(as_operand(y), "bool")], {}), name)


def _no_out(out):
    if out is not None:
        raise _core.ConfigError("out= is not supported: take the result")


def _unary(op, doc):
    def function(x, name=None):
        return named(apply_one(op, [x if is_value(x) else as_operand(x)], {}), name)

    function.__doc__ = doc
    function.__name__ = op
    return function


exp = _unary("exp", "The exponential.")
log = _unary("log", "The natural logarithm.")
sqrt = _unary("sqrt", "The square root.")
square = _unary("square", "x times x.")
sigmoid = _unary("sigmoid", "1 / (1 + exp(-x)).")
tanh = _unary("tanh", "The hyperbolic tangent.")
sin = _unary("sin", "The sine.")
cos = _unary("cos", "The cosine.")
erf = _unary("erf", "The error function.")
floor = _unary("floor", "The greatest whole number that is not above x.")
round = _unary("round", "The nearest whole number, halves away from zero.")


def abs(x, name=None):
    """The absolute value."""
    if is_float(x.dtype):
        return named(apply_one("abs", [x], {}), name)
    return maximum(x, multiply(x, -1), name)


def sign(x, name=None):
    """-1, 0 or 1."""
    if is_float(x.dtype):
        return named(apply_one("sign", [x], {}), name)
    return cast(sign(cast(x, "float64"), name), x.dtype)


def ceil(x, name=None):
    """The least whole number that is not below x."""
    return neg(floor(neg(x)), name)


def neg(x, name=None):
    """-x."""
    return multiply(x, -1.0 if is_float(x.dtype) else -1, name)


def rsqrt(x, name=None):
    """1 / sqrt(x)."""
    return pow(x, -0.5, name)


def reciprocal(x, name=None):
    """1 / x."""
    return pow(x, -1.0, name)


def log1p(x, name=None):
    """log(1 + x)."""
    return log(add(x, 1.0), name)


def expm1(x, name=None):
    """exp(x) - 1."""
    return subtract(exp(x), 1.0, name)


def log2(x, name=None):
    """The logarithm of base 2."""
    return multiply(log(x), 1 / _math.log(2), name)


def log10(x, name=None):
    """The logarithm of base 10."""
    return multiply(log(x), 1 / _math.log(10), name)


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """scale * x + bias, or scale * (x + bias)."""
    if act is not None:
        raise _core.ConfigError("scale: act= is not supported: call the function on the result")
    if is_value(scale):
        return (add(multiply(x, scale), bias, name) if bias_after_scale
                else multiply(add(x, bias), scale, name))
    if not is_float(x.dtype):
        after = add(multiply(x, scale), bias) if bias_after_scale else multiply(add(x, bias), scale)
        return named(cast(after, x.dtype), name)
    return named(apply_one("scale", [x], {"scale": float(scale), "bias": float(bias),
                                          "bias_after_scale": int(bias_after_scale)}), name)


def clip(x, min=None, max=None, name=None):
    """x held between two numbers."""
    if not is_float(x.dtype):
        x = maximum(x, int(min)) if min is not None else x
        return minimum(x, int(max), name) if max is not None else x
    bounds = {"min": min, "max": max}
    attrs = {key: float(value) for key, value in bounds.items() if value is not None}
    return named(apply_one("clip", [x], attrs), name)


def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    """scale_b * tanh(scale_a * x)."""
    return multiply(tanh(multiply(x, scale_a)), scale_b, name)


def add_n(inputs, name=None):
    """The sum of several values."""
    values = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
    total = values[0]
    for value in values[1:]:
        total = add(total, value)
    return named(total, name)


def isnan(x, name=None):
    """True where x is not a number."""
    return not_equal(x, x, name)


def isinf(x, name=None):
    """True where x is infinite."""
    return equal(abs(x), float("inf"), name)


def isfinite(x, name=None):
    """True where x is neither infinite nor not a number."""
    return less_than(abs(x), float("inf"), name)


def axes_of(x, axis: Axis) -> list:
    """An axis, several or all as a list of numbers from 0."""
    rank = len(x.shape)
    axes = range(rank) if axis is None else axis if isinstance(axis, (list, tuple)) else [axis]
    return [int(a) + rank if int(a) < 0 else int(a) for a in axes] if rank else []


def _reduce(op, x, axis, keepdim, name=None):
    attrs = {}
    if axis is not None and not (isinstance(axis, (list, tuple)) and len(axis) == 0):
        attrs["axes"] = axes_of(x, axis)
    if keepdim:
        attrs["keepdim"] = 1
    return named(apply_one(op, [x], attrs), name)


def sum(x, axis: Axis = None, dtype=None, keepdim=False, name=None):
    """The sum over some axes, or over all."""
    if dtype is not None:
        x = cast(x, dtype)
    elif x.dtype in ("bool", "int32", "uint8"):
        x = cast(x, "int64")
    return _reduce("sum", x, axis, keepdim, name)


def mean(x, axis: Axis = None, keepdim=False, name=None):
    """The mean over some axes, or over all."""
    return _reduce("mean", x, axis, keepdim, name)


def _extreme(op, x, axis, keepdim, name):
    if is_float(x.dtype):
        return _reduce(op, x, axis, keepdim, name)
    return cast(_reduce(op, cast(x, "float64"), axis, keepdim, name), x.dtype)


def max(x, axis: Axis = None, keepdim=False, name=None):
    """The largest element over some axes, or over all."""
    return _extreme("max", x, axis, keepdim, name)


def min(x, axis: Axis = None, keepdim=False, name=None):
    """The smallest element over some axes, or over all."""
    return _extreme("min", x, axis, keepdim, name)


amax, amin = max, min


def all(x, axis: Axis = None, keepdim=False, name=None):
    """True where all elements over some axes are."""
    return cast(_reduce("min", cast(cast(x, "bool"), "float32"), axis, keepdim, name), "bool")


def any(x, axis: Axis = None, keepdim=False, name=None):
    """True where one of the elements over some axes is."""
    return cast(_reduce("max", cast(cast(x, "bool"), "float32"), axis, keepdim, name), "bool")


def var(x, axis: Axis = None, unbiased=True, keepdim=False, name=None):
    """The variance over some axes."""
    away = subtract(x, mean(x, axis, True))
    axes = axes_of(x, axis)
    count = 1
    for a in axes:
        count *= x.shape[a]
    total = sum(square(away), axis, keepdim=keepdim)
    return multiply(total, 1.0 / (count - 1 if unbiased and count > 1 else count), name)


def std(x, axis: Axis = None, unbiased=True, keepdim=False, name=None):
    """The standard deviation over some axes."""
    return sqrt(var(x, axis, unbiased, keepdim), name)


def logsumexp(x, axis: Axis = None, keepdim=False, name=None):
    """log(sum(exp(x))) without overflow."""
    most = max(x, axis, True)
    total = log(sum(exp(subtract(x, most)), axis, keepdim=True))
    result = add(total, most)
    if keepdim:
        return named(result, name)
    return _reduce("sum", result, axis, False, name)


def norm(x, p="fro", axis: Axis = None, keepdim=False, name=None):
    """The p-norm over some axes; 2 for 'fro'."""
    if p in ("fro", 2, 2.0):
        return sqrt(sum(square(x), axis, keepdim=keepdim), name)
    if p == 1:
        return sum(abs(x), axis, keepdim=keepdim, name=name)
    if p == float("inf"):
        return max(abs(x), axis, keepdim, name)
    if p == 0:
        return sum(cast(not_equal(x, 0.0), x.dtype), axis, keepdim=keepdim, name=name)
    return pow(sum(pow(abs(x), float(p)), axis, keepdim=keepdim), 1.0 / p, name)


def argmax(x, axis: Optional[int] = None, keepdim=False, dtype="int64", name=None):
    """Where the largest element stands."""
    from argosy._shaping import reshape

    if axis is None:
        x, axis, keepdim = reshape(x, [-1]), 0, False
    attrs = {"axis": int(axis)}
    if keepdim:
        attrs["keepdim"] = 1
    return named(cast(apply_one("argmax", [x], attrs), dtype), name)


def argmin(x, axis: Optional[int] = None, keepdim=False, dtype="int64", name=None):
    """Where the smallest element stands."""
    return argmax(neg(x), axis, keepdim, dtype, name)


def cumsum(x, axis: Optional[int] = None, dtype=None, name=None):
    """The sums so far along an axis, or of all elements in a row."""
    from argosy._shaping import reshape

    x = cast(x, dtype) if dtype is not None else x
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    return named(apply_one("cumsum", [x], {"axis": int(axis)}), name)


def prod(x, axis: Optional[int] = None, keepdim=False, dtype=None, name=None):
    """The product along an axis, or of all elements."""
    from argosy._shaping import reshape, unbind, unsqueeze

    x = cast(x, dtype) if dtype is not None else x
    if axis is None:
        x, axis = reshape(x, [-1]), 0
    result = None
    for part in unbind(x, axis):
        result = part if result is None else multiply(result, part)
    return named(unsqueeze(result, axis) if keepdim else result, name)


def matmul(x, y, transpose_x=False, transpose_y=False, name=None):
    """The product of matrices; earlier axes are batches, which broadcast."""
    from argosy._shaping import expand, squeeze, unsqueeze

    x_vector, y_vector = len(x.shape) == 1, len(y.shape) == 1
    x = unsqueeze(x, 0) if x_vector else x
    y = unsqueeze(y, 1) if y_vector else y
    transpose_x, transpose_y = transpose_x and not x_vector, transpose_y and not y_vector
    x_batch, y_batch = list(x.shape[:-2]), list(y.shape[:-2])
    if x_batch != y_batch and (y_batch or transpose_x):
        batch = list(np.broadcast_shapes(tuple(x_batch), tuple(y_batch)))
        x = expand(x, batch + list(x.shape[-2:]))
        y = expand(y, batch + list(y.shape[-2:]))
    attrs = {}
    if transpose_x:
        attrs["trans_a"] = 1
    if transpose_y:
        attrs["trans_b"] = 1
    result = apply_one("matmul", [x, y], attrs)
    if x_vector and y_vector:
        from argosy._shaping import reshape

        return named(reshape(result, [1]), name)
    if x_vector:
        result = squeeze(result, -2)
    if y_vector:
        result = squeeze(result, -1)
    return named(result, name)


def mm(input, mat2, name=None):
    """The product of two matrices."""
    return matmul(input, mat2, name=name)


def bmm(x, y, name=None):
    """The products of batches of matrices."""
    if len(x.shape) != 3 or len(y.shape) != 3:
        raise _core.ConfigError(f"bmm takes two values of 3 axes, got {x.shape} and {y.shape}")
    return matmul(x, y, name=name)


def dot(x, y, name=None):
    """The sum of the products along the last axis."""
    return sum(multiply(x, y), -1, name=name)


def addmm(input, x, y, beta=1.0, alpha=1.0, name=None):
    """beta * input + alpha * x y."""
    return add(multiply(input, float(beta)), multiply(matmul(x, y), float(alpha)), name)


def equal_all(x, y, name=None):
    """One bool: the same shape and elements."""
    if list(x.shape) != list(y.shape):
        return Tensor(np.array([False]))
    return all(equal(x, y), name=name)


def allclose(x, y, rtol=1e-05, atol=1e-08, equal_nan=False, name=None):
    """One bool: |x - y| <= atol + rtol * |y| everywhere."""
    near = less_equal(abs(subtract(x, y)), add(multiply(abs(y), float(rtol)), float(atol)))
    if equal_nan:
        near = logical_or(near, logical_and(isnan(x), isnan(y)))
    return all(near, name=name)


def increment(x, value=1.0, name=None):
    """x + value, of one element; x itself changes."""
    return x._take(cast(add(x, value), x.dtype)) or x
