"""Functions of neural networks on Tensors and Variables."""

import math as _math

import numpy as np

from argosy import _core
from argosy._apply import Tensor, apply, apply_one, is_variable
from argosy._math import (abs, add, cast, clip, divide, equal, exp, log, logsumexp, matmul, mean,
                          multiply, named, norm, not_equal, pow, sigmoid, sqrt, square, subtract,
                          sum, tanh)
from argosy._shaping import (concat, gather, one_hot, reshape, squeeze, transpose, unsqueeze,
                             where)

__all__ = [
    "batch_norm", "binary_cross_entropy", "binary_cross_entropy_with_logits",
    "conv1d", "conv2d", "cosine_similarity", "cross_entropy", "dropout", "elu", "embedding", "gelu", "glu",
    "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "kl_div", "l1_loss",
    "label_smooth", "layer_norm", "leaky_relu", "linear", "log_loss", "log_sigmoid",
    "log_softmax", "margin_ranking_loss", "mish", "mse_loss", "nll_loss", "normalize",
    "one_hot", "pad", "pairwise_distance", "prelu", "relu", "relu6",
    "scaled_dot_product_attention", "selu", "sequence_mask", "sigmoid", "silu",
    "smooth_l1_loss", "softmax", "softmax_with_cross_entropy", "softplus", "softsign",
    "square_error_cost", "swish", "tanh",
]


def relu(x, name=None):
    """max(x, 0)."""
    return named(apply_one("relu", [x], {}), name)


def leaky_relu(x, negative_slope=0.01, name=None):
    """x where it is positive, negative_slope * x elsewhere."""
    return named(apply_one("leaky_relu", [x], {"alpha": float(negative_slope)}), name)


def prelu(x, weight, data_format="NCHW", name=None):
    """x where it is positive, weight * x elsewhere; a weight for each channel or one for all."""
    if weight.size > 1:
        channel = 1 if data_format.startswith("NC") else len(x.shape) - 1
        weight = reshape(weight, [-1 if a == channel else 1 for a in range(len(x.shape))])
    return subtract(relu(x), multiply(weight, relu(multiply(x, -1.0))), name)


def relu6(x, name=None):
    """x held between 0 and 6."""
    return clip(x, 0.0, 6.0, name)


def hardtanh(x, min=-1.0, max=1.0, name=None):
    """x held between two numbers."""
    return clip(x, min, max, name)


def hardsigmoid(x, slope=1.0 / 6, offset=0.5, name=None):
    """slope * x + offset, held between 0 and 1."""
    return clip(apply_one("scale", [x], {"scale": slope, "bias": offset}), 0.0, 1.0, name)


def hardswish(x, name=None):
    """x * hardsigmoid(x)."""
    return multiply(x, hardsigmoid(x), name)


def gelu(x, approximate=False, name=None):
    """x times the share of a normal distribution that is below it."""
    if approximate:
        inner = multiply(add(x, multiply(pow(x, 3), 0.044715)), _math.sqrt(2 / _math.pi))
        part = tanh(inner)
    else:
        part = apply_one("erf", [multiply(x, 1 / _math.sqrt(2))], {})
    return multiply(multiply(x, 0.5), add(part, 1.0), name)


def softplus(x, beta=1.0, threshold=20.0, name=None):
    """log(1 + exp(beta * x)) / beta."""
    scaled = multiply(x, float(beta))
    stable = add(relu(scaled), log(add(exp(multiply(abs(scaled), -1.0)), 1.0)))
    return multiply(stable, 1.0 / beta, name)


def softsign(x, name=None):
    """x / (1 + |x|)."""
    return divide(x, add(abs(x), 1.0), name)


def log_sigmoid(x, name=None):
    """log(sigmoid(x))."""
    return multiply(softplus(multiply(x, -1.0)), -1.0, name)


def silu(x, name=None):
    """x * sigmoid(x)."""
    return multiply(x, sigmoid(x), name)


swish = silu


def mish(x, name=None):
    """x * tanh(softplus(x))."""
    return multiply(x, tanh(softplus(x)), name)


def elu(x, alpha=1.0, name=None):
    """x where it is positive, alpha * (exp(x) - 1) elsewhere."""
    below = multiply(subtract(exp(clip(x, max=0.0)), 1.0), float(alpha))
    return add(relu(x), below, name)


def selu(x, scale=1.0507009873554804934193349852946, alpha=1.6732632423543772848170429916717,
         name=None):
    """scale * elu(x, alpha)."""
    return multiply(elu(x, alpha), scale, name)


def softmax(x, axis=-1, dtype=None, name=None):
    """exp(x) scaled to sum 1 along an axis."""
    x = cast(x, dtype) if dtype is not None else x
    return named(apply_one("softmax", [x], {"axis": int(axis)}), name)


def log_softmax(x, axis=-1, dtype=None, name=None):
    """log(softmax(x)) without underflow."""
    x = cast(x, dtype) if dtype is not None else x
    return subtract(x, logsumexp(x, axis, True), name)


def glu(x, axis=-1, name=None):
    """The first half along an axis times the sigmoid of the second."""
    a, b = apply("split", [x], {"axis": int(axis), "num": 2})
    return multiply(a, sigmoid(b), name)


def linear(x, weight, bias=None, name=None):
    """x weight + bias."""
    inputs = [x, weight] if bias is None else [x, weight, bias]
    return named(apply_one("linear", inputs, {}), name)


def embedding(x, weight, padding_idx=None, sparse=False, name=None):
    """The rows of a table that an index names. sparse: its gradient is that of these rows only."""
    attrs = {"sparse": 1} if sparse else {}
    if padding_idx is not None:
        attrs["padding_idx"] = int(padding_idx) + (weight.shape[0] if padding_idx < 0 else 0)
    return named(apply_one("embedding", [weight, x], attrs), name)


def dropout(x, p=0.5, axis=None, training=True, mode="upscale_in_train", name=None):
    """Zeros some elements at random while training."""
    if axis is not None:
        raise _core.ConfigError("dropout: axis= is not supported")
    if not training and mode == "upscale_in_train" or p == 0:
        return x
    attrs = {"p": float(p), "mode": mode, "is_test": int(not training)}
    return named(apply_one("dropout", [x], attrs), name)


def normalize(x, p=2, axis=1, epsilon=1e-12, name=None):
    """x divided by its p-norm along an axis."""
    return divide(x, clip(norm(x, p, axis, True), min=epsilon), name)


def cosine_similarity(x1, x2, axis=1, eps=1e-8):
    """The cosine of the angle between two values along an axis."""
    product = sum(multiply(x1, x2), axis)
    lengths = multiply(sum(square(x1), axis), sum(square(x2), axis))
    return divide(product, clip(sqrt(lengths), min=eps))


def pairwise_distance(x, y, p=2.0, epsilon=1e-6, keepdim=False, name=None):
    """The p-norm of x - y along the last axis."""
    return norm(add(subtract(x, y), epsilon), p, -1, keepdim, name)


def layer_norm(x, normalized_shape, weight=None, bias=None, epsilon=1e-5, name=None):
    """The last axes brought to mean 0 and variance 1, then times weight plus bias."""
    sizes = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    count = _math.prod(sizes)
    weight = np.ones(count, dtype=x.dtype) if weight is None else reshape(weight, [count])
    bias = np.zeros(count, dtype=x.dtype) if bias is None else reshape(bias, [count])
    attrs = {"begin_norm_axis": len(x.shape) - len(sizes), "epsilon": float(epsilon)}
    return named(apply("layer_norm", [x, weight, bias], attrs)[0], name)


def batch_norm(x, running_mean, running_var, weight, bias, training=False, momentum=0.9,
               epsilon=1e-5, data_format="NCHW", use_global_stats=None, name=None):
    """Each channel brought to mean 0 and variance 1; training moves the running ones."""
    return batch_norm_over(x, running_mean, running_var, weight, bias, training, momentum, epsilon,
                           data_format, use_global_stats, name)


def batch_norm_over(x, running_mean, running_var, weight, bias, training, momentum, epsilon,
                    data_format, use_global_stats, name=None, sync=False, ranks=None):
    """sync: over the batches of all ranks, which a dynamic graph has to be given."""
    rank = len(x.shape)
    last = data_format in ("NHWC", "NLC", "NDHWC") and rank > 2
    if last:
        x = transpose(x, [0, rank - 1, *range(1, rank - 1)])
    channels = running_mean.shape
    weight = np.ones(channels, dtype=x.dtype) if weight is None else weight
    bias = np.zeros(channels, dtype=x.dtype) if bias is None else bias
    frozen = (not training) if use_global_stats is None else use_global_stats
    attrs = {"momentum": float(momentum), "epsilon": float(epsilon), "is_test": int(frozen)}
    if sync:
        attrs["sync"] = 1
    out = apply("batch_norm", [x, weight, bias, running_mean, running_var], attrs, ranks)
    if not frozen:
        _move(running_mean, out[1])
        _move(running_var, out[2])
    y = transpose(out[0], [0, *range(2, rank), 1]) if last else out[0]
    return named(y, name)


def _move(state, new):
    if is_variable(state):
        state.program.record.update(state, new)
    else:
        state._take(new.detach())


def _reduced(loss, reduction, name=None):
    if reduction == "mean":
        return mean(loss, name=name)
    if reduction == "sum":
        return sum(loss, name=name)
    if reduction == "none":
        return named(loss, name)
    raise _core.ConfigError(f"reduction '{reduction}', expected mean, sum or none")


def _column(label, logits, axis):
    """A hard label with an axis of size 1 where the classes are."""
    if len(label.shape) == len(logits.shape):
        return label
    return unsqueeze(label, axis)


def softmax_with_cross_entropy(logits, label, soft_label=False, ignore_index=-100,
                               numeric_stable_mode=True, return_softmax=False, axis=-1):
    """The loss of each row, with an axis of size 1 where the classes were."""
    rank = len(logits.shape)
    axis = axis + rank if axis < 0 else axis
    order = [a for a in range(rank) if a != axis] + [axis]
    back = [order.index(a) for a in range(rank)]
    turned = logits if axis == rank - 1 else transpose(logits, order)
    label = label if axis == rank - 1 else transpose(label, order)
    if soft_label:
        loss, probabilities = apply("softmax_cross_entropy", [turned, label], {"soft_label": 1})
    elif ignore_index == -100:
        loss, probabilities = apply("softmax_cross_entropy", [turned, label], {})
    else:
        counted = not_equal(label, int(ignore_index))
        safe = multiply(label, cast(counted, label.dtype))
        loss, probabilities = apply("softmax_cross_entropy", [turned, safe], {})
        loss = multiply(loss, cast(counted, loss.dtype))
    if axis != rank - 1:
        loss, probabilities = transpose(loss, back), transpose(probabilities, back)
    return (loss, probabilities) if return_softmax else loss


def cross_entropy(input, label, weight=None, ignore_index=-100, reduction="mean",
                  soft_label=False, axis=-1, use_softmax=True, label_smoothing=0.0, name=None):
    """The loss of logits (or with use_softmax=False of probabilities) for labels of classes."""
    if label_smoothing:
        if not soft_label:
            label = one_hot(_flat_label(label, input), input.shape[axis])
            soft_label = True
        label = _smooth(label, label_smoothing)
    flat = not soft_label and len(label.shape) < len(input.shape)
    if flat:
        label = unsqueeze(label, axis)
    if use_softmax:
        loss = softmax_with_cross_entropy(input, label, soft_label, ignore_index, axis=axis)
    else:
        attrs = {"soft_label": 1} if soft_label else {"ignore_index": int(ignore_index)}
        loss = apply_one("cross_entropy", [input, label], attrs)
    if soft_label:
        return _reduced(loss, reduction, name)
    counted = None
    if weight is not None:
        counted = reshape(gather(weight, reshape(label, [-1])), [0] + [*loss.shape[1:]])
        loss = multiply(loss, counted)
    elif ignore_index != -100:
        counted = cast(not_equal(label, int(ignore_index)), loss.dtype)
    if reduction == "mean" and counted is not None:
        return divide(sum(loss), clip(sum(counted), min=1e-12), name)
    return _reduced(squeeze(loss, axis) if flat else loss, reduction, name)


def _flat_label(label, logits):
    return squeeze(label, -1) if len(label.shape) == len(logits.shape) else label


def _smooth(label, epsilon):
    return add(multiply(label, 1 - epsilon), epsilon / label.shape[-1])


def label_smooth(label, prior_dist=None, epsilon=0.1, name=None):
    """A soft label moved a little towards all classes alike."""
    if prior_dist is not None:
        return add(multiply(label, 1 - epsilon), multiply(prior_dist, epsilon), name)
    return named(_smooth(label, epsilon), name)


def _weighted(loss, weight, reduction, name):
    return _reduced(loss if weight is None else multiply(loss, weight), reduction, name)


def binary_cross_entropy(input, label, weight=None, reduction="mean", name=None):
    """The loss of probabilities for labels 0 and 1."""
    loss = apply_one("log_loss", [input, cast(label, input.dtype)], {"epsilon": 1e-12})
    return _weighted(loss, weight, reduction, name)


def binary_cross_entropy_with_logits(logit, label, weight=None, reduction="mean", pos_weight=None,
                                     name=None):
    """The loss of logits for labels 0 and 1."""
    label = cast(label, logit.dtype)
    loss = apply_one("sigmoid_cross_entropy", [logit, label], {})
    if pos_weight is not None:
        loss = multiply(loss, add(multiply(label, subtract(pos_weight, 1.0)), 1.0))
    return _weighted(loss, weight, reduction, name)


def log_loss(input, label, epsilon=1e-4, name=None):
    """The loss of each probability for labels 0 and 1."""
    return named(apply_one("log_loss", [input, label], {"epsilon": float(epsilon)}), name)


def square_error_cost(input, label):
    """(input - label)^2."""
    return square(subtract(input, label))


def mse_loss(input, label, reduction="mean", name=None):
    """The mean of (input - label)^2."""
    return _reduced(square_error_cost(input, label), reduction, name)


def l1_loss(input, label, reduction="mean", name=None):
    """The mean of |input - label|."""
    return _reduced(abs(subtract(input, label)), reduction, name)


def smooth_l1_loss(input, label, reduction="mean", delta=1.0, name=None):
    """Squares near 0 and lines beyond delta."""
    away = abs(subtract(input, label))
    near = clip(away, max=float(delta))
    loss = multiply(near, subtract(away, multiply(near, 0.5)))
    return _reduced(loss, reduction, name)


def nll_loss(input, label, weight=None, ignore_index=-100, reduction="mean", name=None):
    """The loss of log-probabilities [N, C] for labels [N]."""
    if weight is not None or ignore_index != -100:
        raise _core.ConfigError("nll_loss: weight= and ignore_index= are not supported; "
                                "cross_entropy takes them")
    picked = apply_one("take_along_axis", [input, _column(label, input, 1)], {"axis": 1})
    return _reduced(squeeze(multiply(picked, -1.0), 1), reduction, name)


def kl_div(input, label, reduction="mean", name=None):
    """The divergence of log-probabilities from probabilities."""
    loss = multiply(label, subtract(log(clip(label, min=1e-37)), input))
    if reduction == "batchmean":
        return divide(sum(loss), input.shape[0], name)
    return _reduced(loss, reduction, name)


def margin_ranking_loss(input, other, label, margin=0.0, reduction="mean", name=None):
    """max(0, -label * (input - other) + margin)."""
    away = multiply(multiply(subtract(input, other), label), -1.0)
    return _reduced(relu(add(away, float(margin))), reduction, name)


def hinge_embedding_loss(input, label, margin=1.0, reduction="mean", name=None):
    """input where the label is 1, max(0, margin - input) where it is -1."""
    near = equal(label, 1.0)
    loss = where(near, input, relu(apply_one("scale", [input], {"scale": -1.0,
                                                                "bias": float(margin)})))
    return _reduced(loss, reduction, name)


def sequence_mask(x, maxlen=None, dtype="int64", name=None):
    """For each length a row with as many ones."""
    if maxlen is None:
        maxlen = int(x.numpy().max())
    places = np.arange(int(maxlen), dtype=x.dtype)
    return named(cast(apply_one("less", [Tensor(places) if not is_variable(x) else places,
                                         unsqueeze(x, -1)], {}), dtype), name)


def pad(x, pad, mode="constant", value=0.0, data_format="NCHW", name=None):
    """A number around x: (before, after) for each axis, or for the last ones, innermost first."""
    if mode != "constant":
        raise _core.ConfigError(f"pad: mode '{mode}' is not supported, only constant")
    rank, pairs = len(x.shape), [(int(a), int(b)) for a, b in zip(pad[::2], pad[1::2])]
    if len(pairs) == rank:
        axes = list(range(rank))
    else:
        innermost = rank - 1 if data_format.startswith("NC") else rank - 2
        axes = [innermost - i for i in range(len(pairs))]
    for axis, (before, after) in zip(axes, pairs):
        parts = [_block(x, axis, before, value), x, _block(x, axis, after, value)]
        parts = [part for part in parts if part is not None]
        x = concat(parts, axis) if len(parts) > 1 else x
    return named(x, name)


def _block(x, axis, size, value):
    if size == 0:
        return None
    edge = apply_one("slice", [x], {"axes": [axis], "starts": [0], "ends": [1]})
    flat = apply_one("scale", [apply_one("zeros_like", [edge], {})], {"bias": float(value)})
    return flat if size == 1 else concat([flat] * size, axis)


def scaled_dot_product_attention(query, key, value, attn_mask=None, dropout_p=0.0,
                                 is_causal=False, training=True, name=None):
    """softmax(q k^T / sqrt(d)) v for [batch, length, heads, d]."""
    q, k, v = (transpose(part, [0, 2, 1, 3]) for part in (query, key, value))
    scores = multiply(matmul(q, k, transpose_y=True), 1.0 / _math.sqrt(query.shape[-1]))
    if is_causal:
        rows, columns = scores.shape[-2:]
        scores = add(scores, Tensor(np.triu(np.full((rows, columns), -1e9, "float32"), 1)))
    if attn_mask is not None:
        scores = add(scores, attn_mask)
    weights = dropout(softmax(scores), dropout_p, training=training)
    return named(transpose(matmul(weights, v), [0, 2, 1, 3]), name)


def _pair(value) -> list:
    return [int(v) for v in value] if isinstance(value, (list, tuple)) else [int(value)] * 2


def _paddings(padding, sizes, kernel, stride, dilation) -> list:
    """(before, after) of two axes from a number, a pair, four numbers, "same" or "valid"."""
    if isinstance(padding, str):
        if padding.lower() == "valid":
            return [0, 0, 0, 0]
        if padding.lower() != "same":
            raise _core.ConfigError(f"padding '{padding}', expected same, valid or numbers")
        around = []
        for size, k, s, d in zip(sizes, kernel, stride, dilation):
            total = max((-(-size // s) - 1) * s + d * (k - 1) + 1 - size, 0)
            around += [total // 2, total - total // 2]
        return around
    if isinstance(padding, (list, tuple)) and len(padding) == 4:
        return [int(v) for v in padding]
    rows, columns = _pair(padding)
    return [rows, rows, columns, columns]


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCHW",
           name=None):
    """Sums of the products of filters [out, in / groups, height, width] with windows of x."""
    if data_format not in ("NCHW", "NHWC"):
        raise _core.ConfigError(f"conv2d: data_format '{data_format}', expected NCHW or NHWC")
    last = data_format == "NHWC"
    x = transpose(x, [0, 3, 1, 2]) if last else x
    stride, dilation = _pair(stride), _pair(dilation)
    around = _paddings(padding, x.shape[2:], weight.shape[2:], stride, dilation)
    y = apply_one("conv2d", [x, weight], {"strides": stride, "paddings": around,
                                          "dilations": dilation, "groups": int(groups)})
    if bias is not None:
        y = add(y, reshape(bias, [1, -1, 1, 1]))
    return named(transpose(y, [0, 2, 3, 1]) if last else y, name)


def conv1d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NCL",
           name=None):
    """Sums of the products of filters [out, in / groups, length] with windows of x."""
    if data_format not in ("NCL", "NLC"):
        raise _core.ConfigError(f"conv1d: data_format '{data_format}', expected NCL or NLC")

    def one(value):
        return int(value[0]) if isinstance(value, (list, tuple)) else int(value)

    last = data_format == "NLC"
    x = unsqueeze(transpose(x, [0, 2, 1]) if last else x, 2)
    if not isinstance(padding, str):
        sides = list(padding) if isinstance(padding, (list, tuple)) else [padding]
        padding = [0, 0, int(sides[0]), int(sides[-1])]
    y = conv2d(x, unsqueeze(weight, 2), bias, [1, one(stride)], padding, [1, one(dilation)], groups)
    y = squeeze(y, 2)
    return named(transpose(y, [0, 2, 1]) if last else y, name)
