"""Operators and methods that Tensors and Variables have in common."""

from argosy import _creation, _math, _shaping

_METHODS = {
    _math: """add subtract multiply divide floor_divide remainder mod floor_mod maximum minimum fmax
        fmin pow equal not_equal less_than less_equal greater_than greater_equal logical_not
        logical_and logical_or logical_xor exp log sqrt square sigmoid tanh sin cos erf floor round
        abs sign ceil neg rsqrt reciprocal log1p log2 log10 expm1 scale clip isnan isinf isfinite
        sum mean max min amax amin all any var std logsumexp norm argmax argmin cumsum prod matmul
        mm bmm dot cast equal_all allclose stanh addmm""",
    _shaping: """reshape flatten transpose t moveaxis squeeze unsqueeze split chunk unbind unstack
        tile expand broadcast_to expand_as gather index_select gather_nd take_along_axis scatter
        slice strided_slice roll flip repeat_interleave where masked_fill nonzero masked_select
        unique argsort sort topk tril triu diag""",
    _creation: "zeros_like ones_like full_like",
}


def _swapped(function):
    def operator(self, other):
        return function(_math.as_operand(other) if isinstance(other, (list, tuple)) else other, self)

    return operator


class Operators:
    """x + y, x[0], x.sum() and the like, written once over apply."""

    __slots__ = ()

    __add__ = __radd__ = lambda self, other: _math.add(self, other)
    __sub__ = lambda self, other: _math.subtract(self, other)
    __rsub__ = lambda self, other: _math.add(_math.neg(self), other)
    __mul__ = __rmul__ = lambda self, other: _math.multiply(self, other)
    __truediv__ = lambda self, other: _math.divide(self, other)
    __rtruediv__ = _swapped(lambda x, y: _math.binary_floats("div", x, y))
    __floordiv__ = lambda self, other: _math.floor_divide(self, other)
    __rfloordiv__ = _swapped(_math.floor_divide)
    __mod__ = lambda self, other: _math.remainder(self, other)
    __rmod__ = _swapped(_math.remainder)
    __pow__ = lambda self, other: _math.pow(self, other)
    __rpow__ = _swapped(lambda x, y: _math.binary_floats("power", x, y))
    __matmul__ = lambda self, other: _math.matmul(self, other)
    __neg__ = lambda self: _math.neg(self)
    __abs__ = lambda self: _math.abs(self)
    __eq__ = lambda self, other: _math.equal(self, other)
    __ne__ = lambda self, other: _math.not_equal(self, other)
    __lt__ = lambda self, other: _math.less_than(self, other)
    __le__ = lambda self, other: _math.less_equal(self, other)
    __gt__ = lambda self, other: _math.greater_than(self, other)
    __ge__ = lambda self, other: _math.greater_equal(self, other)
    __and__ = lambda self, other: _math.logical_and(self, other)
    __or__ = lambda self, other: _math.logical_or(self, other)
    __xor__ = lambda self, other: _math.logical_xor(self, other)
    __invert__ = lambda self: _math.logical_not(self)
    __hash__ = object.__hash__
    __array_priority__ = 100  # NumPy leaves array + value to the value

    def __getitem__(self, key):
        return _shaping.getitem(self, key)

    def astype(self, dtype):
        """The same numbers as another type."""
        return _math.cast(self, dtype)

    @property
    def T(self):
        """With its axes in reverse order."""
        return _shaping.transpose(self, list(range(len(self.shape)))[::-1])

    def dim(self) -> int:
        """How many axes there are."""
        return len(self.shape)


def _install():
    for module, names in _METHODS.items():
        for name in names.split():
            setattr(Operators, name, getattr(module, name))


_install()
