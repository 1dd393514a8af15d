"""First values of parameters. They depend on the seed and the parameter's name only."""

import math

import numpy as np

from argosy import _core
from argosy._apply import as_array


class Initializer:
    """Base of all: a text that the engine reads, for a shape."""

    def _text(self, shape) -> str:
        raise NotImplementedError

    def __call__(self, parameter, block=None):
        """Gives a parameter its first values anew."""
        parameter.set_value(_core.first_values(self._text(parameter.shape), parameter.shape,
                                               parameter.name))
        return parameter


class Constant(Initializer):
    """One number."""

    def __init__(self, value: float = 0.0):
        self._value = float(value)

    def _text(self, shape) -> str:
        return f"constant({self._value!r})"


class Uniform(Initializer):
    """Drawn evenly from [low, high)."""

    def __init__(self, low: float = -1.0, high: float = 1.0, name=None):
        self._low, self._high = float(low), float(high)

    def _text(self, shape) -> str:
        return f"uniform({self._low!r}, {self._high!r})"


class Normal(Initializer):
    """Drawn from a normal distribution."""

    _kind = "normal"

    def __init__(self, mean: float = 0.0, std: float = 1.0, name=None):
        self._mean, self._std = float(mean), float(std)

    def _text(self, shape) -> str:
        return f"{self._kind}({self._mean!r}, {self._std!r})"


class TruncatedNormal(Normal):
    """The same, drawn again beyond two standard deviations."""

    _kind = "truncated_normal"

    def __init__(self, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0,
                 name=None):
        super().__init__(mean, std)
        if (a, b) != (-2.0, 2.0):
            raise _core.ConfigError("TruncatedNormal: only a=-2 and b=2 are supported")


def _fans(shape) -> tuple:
    """[in, out] of a matrix; [out, in, kernel...] of a convolution."""
    shape = list(shape)
    if len(shape) < 2:
        return (shape[0] if shape else 1,) * 2
    rest = math.prod(shape[2:])
    first, second = shape[0] * rest, shape[1] * rest
    return (first, second) if len(shape) == 2 else (second, first)


def _symmetric(limit: float) -> str:
    return f"uniform({-limit!r}, {limit!r})"


class XavierUniform(Initializer):
    """Even, within sqrt(6 / (inputs + outputs))."""

    def __init__(self, fan_in=None, fan_out=None, gain: float = 1.0, name=None):
        self._fan_in, self._fan_out, self._gain = fan_in, fan_out, gain

    def _spread(self, shape) -> float:
        fan_in, fan_out = _fans(shape)
        fan_in = fan_in if self._fan_in is None else self._fan_in
        fan_out = fan_out if self._fan_out is None else self._fan_out
        return self._gain * math.sqrt(2.0 / (fan_in + fan_out))

    def _text(self, shape) -> str:
        return _symmetric(math.sqrt(3.0) * self._spread(shape))


class XavierNormal(XavierUniform):
    """Normal, with a deviation of sqrt(2 / (inputs + outputs))."""

    def _text(self, shape) -> str:
        return f"normal(0.0, {self._spread(shape)!r})"


_GAINS = {"sigmoid": 1.0, "linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0,
          "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}


def calculate_gain(nonlinearity: str, param=None) -> float:
    """How much wider the first values are before this function."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity not in _GAINS:
        raise _core.ConfigError(f"no gain for '{nonlinearity}', expected leaky_relu or one of "
                                f"{', '.join(_GAINS)}")
    return _GAINS[nonlinearity]


class KaimingUniform(Initializer):
    """Even, within gain * sqrt(3 / inputs)."""

    def __init__(self, fan_in=None, negative_slope: float = 0.0, nonlinearity: str = "relu"):
        self._fan_in = fan_in
        self._gain = calculate_gain(nonlinearity, negative_slope)

    def _spread(self, shape) -> float:
        fan_in = _fans(shape)[0] if self._fan_in is None else self._fan_in
        return self._gain / math.sqrt(fan_in)

    def _text(self, shape) -> str:
        return _symmetric(math.sqrt(3.0) * self._spread(shape))


class KaimingNormal(KaimingUniform):
    """Normal, with a deviation of gain / sqrt(inputs)."""

    def _text(self, shape) -> str:
        return f"normal(0.0, {self._spread(shape)!r})"


class Assign(Initializer):
    """These numbers."""

    def __init__(self, value, name=None):
        self._value = np.asarray(as_array(value), dtype="float32")

    def _text(self, shape) -> str:
        if self._value.size != math.prod(shape):
            raise _core.ConfigError(f"Assign: {self._value.size} numbers for a parameter of "
                                    f"{list(shape)}")
        return "assign(" + ", ".join(repr(float(v)) for v in self._value.reshape(-1)) + ")"

    def __call__(self, parameter, block=None):
        """Gives a parameter these numbers."""
        self._text(parameter.shape)
        parameter.set_value(self._value.reshape(parameter.shape))
        return parameter


_weights, _biases = None, None


def set_global_initializer(weight_init, bias_init=None) -> None:
    """What parameters begin with where neither a layer nor a ParamAttr says."""
    global _weights, _biases
    _weights, _biases = weight_init, bias_init


def default_initializer(is_bias: bool) -> Initializer:
    """Zeros for a bias and XavierUniform for others, unless set_global_initializer said else."""
    if is_bias:
        return _biases if _biases is not None else Constant(0.0)
    return _weights if _weights is not None else XavierUniform()
