"""Layers and functions of the 1.x releases, over those of argosy."""

from typing import Any, List, Optional, Sequence

import argosy
from argosy import ConfigError
from argosy import nn as _nn
from argosy._apply import apply_one as _apply_one
from argosy.nn import functional as _F
from argosy.optimizer import lr as _lr
from argosy.static import accuracy, auc
from argosy.static import data as _data
from argosy.static import nn as _layers
from argosy.static.nn import batch_norm, sequence_pool
from paddle import _names

__all__ = ["accuracy", "argmax", "auc", "batch_norm", "cast", "clip", "concat", "cos_sim",
           "create_parameter", "cross_entropy", "data", "dropout", "elementwise_add",
           "elementwise_div", "elementwise_max", "elementwise_min", "elementwise_mul",
           "elementwise_pow", "elementwise_sub", "embedding", "exponential_decay", "fc", "gather",
           "l2_normalize", "leaky_relu", "log_loss", "matmul", "mean", "mul", "natural_exp_decay",
           "one_hot", "piecewise_decay", "polynomial_decay", "reduce_max", "reduce_mean",
           "reduce_min", "reduce_sum", "relu", "reshape", "scale", "sequence_pool", "sigmoid",
           "sigmoid_cross_entropy_with_logits", "slice", "softmax", "softmax_with_cross_entropy",
           "split", "square_error_cost", "squeeze", "stack", "sum", "sums", "tanh", "topk",
           "transpose", "unsqueeze"]

relu, sigmoid, tanh, leaky_relu = _F.relu, _F.sigmoid, _F.tanh, _F.leaky_relu
square_error_cost = _F.square_error_cost
concat, stack, gather = argosy.concat, argosy.stack, argosy.gather
cast = argosy.cast


def data(name: str, shape: Sequence[int], append_batch_size: bool = True, dtype: str = "float32",
         lod_level: int = 0, type: Any = None, stop_gradient: bool = True) -> Any:
    """A variable that is fed; a batch axis is put before the shape unless it has one."""
    argosy.enable_static()
    sizes = [-1 if size is None else size for size in shape]
    if append_batch_size and -1 not in sizes:
        sizes = [-1] + sizes
    variable = _data(name, sizes, dtype, lod_level)
    variable.stop_gradient = stop_gradient
    return variable


def fc(input: Any, size: int, num_flatten_dims: int = 1, param_attr: Any = None,
       bias_attr: Any = None, act: Optional[str] = None, name: Optional[str] = None) -> Any:
    """act(input w + b)."""
    return _layers.fc(input, size, num_flatten_dims, param_attr, bias_attr, act, name)


def embedding(input: Any, size: Sequence[int], is_sparse: bool = False, is_distributed: bool = False,
              padding_idx: Optional[int] = None, param_attr: Any = None,
              dtype: str = "float32") -> Any:
    """Rows of a table by ids; a last axis of 1 gives way to the row."""
    rows = _layers.lookup(input, size, param_attr, padding_idx, is_sparse or is_distributed, dtype)
    shape = (input.shape[:-1] if input.shape[-1] == 1 else input.shape) + [int(size[1])]
    return rows if rows.shape == shape else rows.reshape(shape)


def mean(x: Any, name: Optional[str] = None) -> Any:
    """The mean of everything."""
    return argosy.mean(x)


def cross_entropy(input: Any, label: Any, soft_label: bool = False, ignore_index: int = -100) -> Any:
    """-log of the probability of the label, [batch, 1]; the input holds probabilities."""
    return _apply_one("cross_entropy", [input, label],
                      {"soft_label": int(soft_label), "ignore_index": ignore_index})


def softmax(input: Any, use_cudnn: bool = False, name: Optional[str] = None, axis: int = -1) -> Any:
    """Probabilities."""
    return _F.softmax(input, axis)


def softmax_with_cross_entropy(logits: Any, label: Any, soft_label: bool = False,
                               ignore_index: int = -100, numeric_stable_mode: bool = True,
                               return_softmax: bool = False, axis: int = -1) -> Any:
    """The cross entropy of logits, [batch, 1]."""
    return _F.softmax_with_cross_entropy(logits, label, soft_label, ignore_index,
                                         numeric_stable_mode, return_softmax, axis)


def sigmoid_cross_entropy_with_logits(x: Any, label: Any, ignore_index: int = -100,
                                      name: Optional[str] = None, normalize: bool = False) -> Any:
    """The cross entropy of each logit."""
    if ignore_index != -100 or normalize:
        raise ConfigError(f"sigmoid_cross_entropy_with_logits: ignore_index={ignore_index}, "
                          f"normalize={normalize}: expected -100 and False")
    return _apply_one("sigmoid_cross_entropy", [x, label], {})


def log_loss(input: Any, label: Any, epsilon: float = 1e-4, name: Optional[str] = None) -> Any:
    """The cross entropy of each probability."""
    return _F.log_loss(input, label, epsilon)


def dropout(x: Any, dropout_prob: float, is_test: bool = False, seed: Optional[int] = None,
            name: Optional[str] = None, dropout_implementation: str = "downgrade_in_infer") -> Any:
    """Zeroes a share of the elements."""
    if seed:
        raise ConfigError("dropout: seed is not supported; set the program's random_seed")
    mode = {"downgrade_in_infer": "downscale_in_infer"}.get(dropout_implementation,
                                                            dropout_implementation)
    return _F.dropout(x, dropout_prob, training=not is_test, mode=mode)


def _activated(value: Any, act: Optional[str]) -> Any:
    return value if act is None else getattr(_F, act)(value)


def _elementwise(function):
    def layer(x: Any, y: Any, axis: int = -1, act: Optional[str] = None,
              name: Optional[str] = None) -> Any:
        """Element by element; y may begin at an axis of x."""
        if axis not in (-1,) and len(y.shape) < len(x.shape):
            y = y.reshape(y.shape + [1] * (len(x.shape) - axis - len(y.shape)))
        return _activated(function(x, y), act)

    return layer


elementwise_add = _elementwise(argosy.add)
elementwise_sub = _elementwise(argosy.subtract)
elementwise_mul = _elementwise(argosy.multiply)
elementwise_div = _elementwise(argosy.divide)
elementwise_max = _elementwise(argosy.maximum)
elementwise_min = _elementwise(argosy.minimum)
elementwise_pow = _elementwise(argosy.pow)


def _reduce(function):
    def layer(input: Any, dim: Any = None, keep_dim: bool = False,
              name: Optional[str] = None) -> Any:
        """Over some axes, or over everything."""
        return function(input, axis=dim, keepdim=keep_dim)

    return layer


reduce_sum, reduce_mean = _reduce(argosy.sum), _reduce(argosy.mean)
reduce_max, reduce_min = _reduce(argosy.max), _reduce(argosy.min)


def sums(input: Sequence[Any], out: Any = None) -> Any:
    """The sum of several variables."""
    if out is not None:
        raise ConfigError("sums: out is not supported, expected None")
    total = input[0]
    for value in input[1:]:
        total = total + value
    return total


def sum(x: Any) -> Any:
    """The sum of several variables, or the variable itself."""
    return sums(x) if isinstance(x, (list, tuple)) else x


def mul(x: Any, y: Any, x_num_col_dims: int = 1, y_num_col_dims: int = 1,
        name: Optional[str] = None) -> Any:
    """The product of two matrices."""
    if x_num_col_dims != 1 or y_num_col_dims != 1:
        raise ConfigError("mul: x_num_col_dims and y_num_col_dims are 1, or use matmul")
    return argosy.matmul(x, y)


def matmul(x: Any, y: Any, transpose_x: bool = False, transpose_y: bool = False, alpha: float = 1.0,
           name: Optional[str] = None) -> Any:
    """The product of two matrices, times alpha."""
    product = argosy.matmul(x, y, transpose_x, transpose_y)
    return product if alpha == 1.0 else product * alpha


def reshape(x: Any, shape: Sequence[int], actual_shape: Any = None, act: Optional[str] = None,
            inplace: bool = False, name: Optional[str] = None) -> Any:
    """Another shape."""
    if actual_shape is not None:
        raise ConfigError("reshape: actual_shape is not supported, expected None")
    return _activated(argosy.reshape(x, list(shape)), act)


def scale(x: Any, scale: float = 1.0, bias: float = 0.0, bias_after_scale: bool = True,
          act: Optional[str] = None, name: Optional[str] = None) -> Any:
    """x scale + bias."""
    return _activated(argosy.scale(x, scale, bias, bias_after_scale), act)


def clip(x: Any, min: float, max: float, name: Optional[str] = None) -> Any:
    """Within these bounds."""
    return argosy.clip(x, min, max)


def transpose(x: Any, perm: Sequence[int], name: Optional[str] = None) -> Any:
    """Axes in another order."""
    return argosy.transpose(x, list(perm))


def squeeze(input: Any, axes: Sequence[int], name: Optional[str] = None) -> Any:
    """Without these axes of size 1."""
    return argosy.squeeze(input, list(axes))


def unsqueeze(input: Any, axes: Any, name: Optional[str] = None) -> Any:
    """With axes of size 1 more."""
    return argosy.unsqueeze(input, axes)


def slice(input: Any, axes: Sequence[int], starts: Sequence[int], ends: Sequence[int]) -> Any:
    """A range of some axes."""
    return argosy.slice(input, axes, starts, ends)


def split(input: Any, num_or_sections: Any, dim: int = -1, name: Optional[str] = None) -> List[Any]:
    """Pieces along an axis."""
    return argosy.split(input, num_or_sections, dim)


def argmax(x: Any, axis: int = 0) -> Any:
    """Where the largest element is."""
    return argosy.argmax(x, axis)


def topk(input: Any, k: int, name: Optional[str] = None) -> Any:
    """The k largest elements, and where they are."""
    return argosy.topk(input, k)


def one_hot(input: Any, depth: int, allow_out_of_range: bool = False) -> Any:
    """A row of zeros with a one at the id."""
    if allow_out_of_range:
        raise ConfigError("one_hot: allow_out_of_range is not supported, expected False")
    ids = input.reshape(input.shape[:-1]) if input.shape[-1] == 1 else input
    return _F.one_hot(ids, depth)


def l2_normalize(x: Any, axis: int, epsilon: float = 1e-12, name: Optional[str] = None) -> Any:
    """x over its length along an axis."""
    return _F.normalize(x, 2, axis, epsilon)


def cos_sim(X: Any, Y: Any) -> Any:
    """The cosine between rows, [batch, 1]."""
    return _F.cosine_similarity(X, Y, axis=1).reshape([-1, 1])


def create_parameter(shape: Sequence[int], dtype: str = "float32", name: Optional[str] = None,
                     attr: Any = None, is_bias: bool = False,
                     default_initializer: Any = None) -> Any:
    """A parameter of the default program."""
    attr = argosy.ParamAttr.of(attr)
    attr.name = attr.name or name
    return argosy.create_parameter(shape, dtype, attr, is_bias, default_initializer)


def exponential_decay(learning_rate: float, decay_steps: int, decay_rate: float,
                      staircase: bool = False) -> "_TextDecay":
    """learning_rate decay_rate ^ (step / decay_steps)."""
    return _TextDecay(learning_rate, f"exponential({float(learning_rate)!r}, steps={decay_steps}, "
                                     f"factor={float(decay_rate)!r}, staircase={int(staircase)})")


def natural_exp_decay(learning_rate: float, decay_steps: int, decay_rate: float,
                      staircase: bool = False) -> "_TextDecay":
    """learning_rate e ^ (-decay_rate step / decay_steps)."""
    import math

    return exponential_decay(learning_rate, decay_steps, math.exp(-decay_rate), staircase)


def polynomial_decay(learning_rate: float, decay_steps: int, end_learning_rate: float = 0.0001,
                     power: float = 1.0, cycle: bool = False) -> "_TextDecay":
    """From learning_rate to end_learning_rate in decay_steps."""
    return _TextDecay(learning_rate, f"polynomial({float(learning_rate)!r}, steps={decay_steps}, "
                                     f"end={float(end_learning_rate)!r}, power={float(power)!r}, "
                                     f"cycle={int(cycle)})")


def piecewise_decay(boundaries: Sequence[int], values: Sequence[float]) -> Any:
    """A rate for each range of steps."""
    return _lr.PiecewiseDecay(list(boundaries), list(values))


class _TextDecay(_lr.LRScheduler):
    """A schedule of static programs by its text."""

    def __init__(self, learning_rate: float, text: str):
        self._text = text
        super().__init__(learning_rate)

    def get_lr(self) -> float:
        """The first rate; programs compute the others."""
        return self.base_lr

    def _schedule(self) -> str:
        return self._text


__getattr__, __dir__ = _names.lazy(__name__, names={
    name: f"argosy:{name}" for name in
    ("abs", "exp", "log", "sqrt", "square", "pow", "floor", "round", "sign", "where", "zeros",
     "ones", "zeros_like", "ones_like", "expand_as", "flatten", "equal", "less_than",
     "greater_than", "not_equal", "logical_and", "logical_or", "logical_not", "cumsum")})
del _nn
