"""Layers with parameters, and functions as layers."""

import copy

import numpy as np

from argosy import _core, unique_name
from argosy._apply import Tensor
from argosy._mode import in_static_mode
from argosy.nn import functional as F
from argosy._initializers import Constant, Normal
from argosy.nn.layer import Layer


class Linear(Layer):
    """x weight + bias: weight [in, out]."""

    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__(name)
        self._sizes = in_features, out_features
        self.weight = self.create_parameter([in_features, out_features], weight_attr)
        self.add_parameter("bias", self.create_parameter([out_features], bias_attr, is_bias=True))

    def forward(self, input):
        """x weight + bias."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self):
        """Its sizes."""
        return f"in_features={self._sizes[0]}, out_features={self._sizes[1]}, dtype=float32"


class Embedding(Layer):
    """Rows of a table by index. sparse=True: a step touches the rows that it uses."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, sparse=False,
                 weight_attr=None, name=None):
        super().__init__(name)
        self._sizes, self._sparse = (num_embeddings, embedding_dim), sparse
        self._padding_idx = (None if padding_idx is None else
                             padding_idx + (num_embeddings if padding_idx < 0 else 0))
        if self._padding_idx is not None and not 0 <= self._padding_idx < num_embeddings:
            raise _core.ConfigError(f"Embedding: padding_idx {padding_idx} of {num_embeddings} rows")
        self._static_attr = None
        if sparse and in_static_mode():
            self._static_attr = _table_attr(weight_attr, self._full_name)
            return
        self.weight = self.create_parameter([num_embeddings, embedding_dim], weight_attr)
        if self._padding_idx is not None and isinstance(self.weight, Tensor):
            self.weight.numpy()[self._padding_idx] = 0.0

    def forward(self, x):
        """The rows that x names."""
        if self._static_attr is not None:
            from argosy.static.nn import embedding

            return embedding(x, self._sizes, True, padding_idx=self._padding_idx,
                             param_attr=self._static_attr)
        return F.embedding(x, self.weight, self._padding_idx, self._sparse)

    def extra_repr(self):
        """Its sizes."""
        return f"{self._sizes[0]}, {self._sizes[1]}, sparse={self._sparse}"


def _table_attr(attr, layer):
    """The same with a name, which every use of the table knows it by."""
    from argosy._parameters import ParamAttr

    named = copy.copy(ParamAttr.of(attr))
    named.name = named.name or unique_name.generate(f"{layer}.w")
    return named


class Dropout(Layer):
    """Zeros some elements at random while training."""

    def __init__(self, p=0.5, axis=None, mode="upscale_in_train", name=None):
        super().__init__()
        self.p, self.axis, self.mode = p, axis, mode

    def forward(self, input):
        """The input with some zeros."""
        return F.dropout(input, self.p, self.axis, self.training, self.mode)

    def extra_repr(self):
        """Its probability."""
        return f"p={self.p}, mode={self.mode}"


class LayerNorm(Layer):
    """The last axes brought to mean 0 and variance 1."""

    def __init__(self, normalized_shape, epsilon=1e-5, weight_attr=None, bias_attr=None, name=None):
        super().__init__(name)
        self._shape = ([normalized_shape] if isinstance(normalized_shape, int)
                       else list(normalized_shape))
        self._epsilon = epsilon
        count = [int(np.prod(self._shape))]
        self.add_parameter("weight", self.create_parameter(count, weight_attr,
                                                           default_initializer=Constant(1.0)))
        self.add_parameter("bias", self.create_parameter(count, bias_attr, is_bias=True))

    def forward(self, input):
        """The input with its last axes normalized."""
        return F.layer_norm(input, self._shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self):
        """Its shape."""
        return f"normalized_shape={self._shape}, epsilon={self._epsilon}"


class BatchNorm1D(Layer):
    """Each channel brought to mean 0 and variance 1 over the batch."""

    _formats = ("NCL", "NLC", "NC")

    def __init__(self, num_features, momentum=0.9, epsilon=1e-5, weight_attr=None, bias_attr=None,
                 data_format=None, use_global_stats=None, name=None):
        super().__init__(name)
        self._format = data_format or self._formats[0]
        if self._format not in self._formats:
            raise _core.ConfigError(f"data_format '{data_format}', expected one of "
                                    f"{', '.join(self._formats)}")
        self._features, self._momentum, self._epsilon = num_features, momentum, epsilon
        self._use_global_stats = use_global_stats
        sizes = [num_features]
        self.add_parameter("weight", self.create_parameter(sizes, weight_attr,
                                                           default_initializer=Constant(1.0)))
        self.add_parameter("bias", self.create_parameter(sizes, bias_attr, is_bias=True))
        self.register_buffer("_mean", self._state("w_1", 0.0))
        self.register_buffer("_variance", self._state("w_2", 1.0))

    def _state(self, suffix, value):
        name = f"{self._full_name}.{suffix}"
        if in_static_mode():
            from argosy.static import default_main_program

            return default_main_program().record.state(name, [self._features], "float32",
                                                       f"constant({value})")
        state = Tensor(np.full([self._features], value, dtype="float32"))
        state.name, state.persistable = name, True
        return state

    def forward(self, x):
        """The input with its channels normalized."""
        return F.batch_norm(x, self._mean, self._variance, self.weight, self.bias, self.training,
                            self._momentum, self._epsilon, self._format, self._use_global_stats)

    def extra_repr(self):
        """Its size."""
        return f"num_features={self._features}, momentum={self._momentum}, epsilon={self._epsilon}"


class SyncBatchNorm(BatchNorm1D):
    """Each channel brought to mean 0 and variance 1 over the batches of all ranks."""

    _formats = ("NCHW", "NHWC", "NCL", "NLC", "NC")

    def __init__(self, num_features, momentum=0.9, epsilon=1e-5, weight_attr=None, bias_attr=None,
                 data_format="NCHW", name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format,
                         None, name)

    def forward(self, x):
        """The input with its channels normalized."""
        ranks = _rank_sum() if self.training and not in_static_mode() else None
        return F.batch_norm_over(x, self._mean, self._variance, self.weight, self.bias,
                                 self.training, self._momentum, self._epsilon, self._format,
                                 self._use_global_stats, sync=True, ranks=ranks)

    @classmethod
    def convert_sync_batchnorm(cls, layer):
        """The layer with every BatchNorm in it made a SyncBatchNorm that shares its parameters."""
        if isinstance(layer, BatchNorm1D) and not isinstance(layer, cls):
            return cls._over(layer)
        for name, child in list(layer.named_children()):
            converted = cls.convert_sync_batchnorm(child)
            if converted is not child:
                layer.add_sublayer(name, converted)
        return layer

    @classmethod
    def _over(cls, norm):
        if getattr(norm, "_act", None):
            raise _core.ConfigError(f"convert_sync_batchnorm: {norm.full_name()} has "
                                    f"act={norm._act!r}, expected a layer of its own for it")
        synced = cls.__new__(cls)
        synced.__dict__.update(norm.__dict__)
        return synced


def _rank_sum():
    """Of the job that this process is a rank of; None: it is alone."""
    from argosy.fleet import sum_over_ranks

    return sum_over_ranks()


class BatchNorm2D(BatchNorm1D):
    """Each channel brought to mean 0 and variance 1 over batch and pixels."""

    _formats = ("NCHW", "NHWC")


class BatchNorm(BatchNorm1D):
    """BatchNorm with a choice of what follows."""

    _formats = ("NCHW", "NHWC", "NCL", "NLC", "NC")

    def __init__(self, num_channels, act=None, is_test=False, momentum=0.9, epsilon=1e-5,
                 param_attr=None, bias_attr=None, dtype="float32", data_layout="NCHW",
                 use_global_stats=False):
        super().__init__(num_channels, momentum, epsilon, param_attr, bias_attr, data_layout,
                         True if use_global_stats else None)
        self._act = act
        self.training = not is_test

    def forward(self, input):
        """The input with its channels normalized."""
        y = super().forward(input)
        return getattr(F, self._act)(y) if self._act else y


class PReLU(Layer):
    """x where it is positive, a learnt factor of it elsewhere."""

    def __init__(self, num_parameters=1, init=0.25, weight_attr=None, data_format="NCHW",
                 name=None):
        super().__init__()
        self._format = data_format
        self.weight = self.create_parameter([num_parameters], weight_attr,
                                            default_initializer=Constant(init))

    def forward(self, x):
        """The function of x."""
        return F.prelu(x, self.weight, self._format)


class Bilinear(Layer):
    """x1 W x2 + b for each output."""

    def __init__(self, in1_features, in2_features, out_features, weight_attr=None, bias_attr=None,
                 name=None):
        super().__init__()
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr,
                                            default_initializer=Normal(0.0, in1_features ** -0.5))
        self.add_parameter("bias", self.create_parameter([out_features], bias_attr, is_bias=True))

    def forward(self, x1, x2):
        """One number for each output."""
        from argosy._shaping import einsum

        y = einsum("bi,oij,bj->bo", x1, self.weight, x2)
        return y if self.bias is None else y + self.bias


class Flatten(Layer):
    """Several axes as one."""

    def __init__(self, start_axis=1, stop_axis=-1):
        super().__init__()
        self._axes = start_axis, stop_axis

    def forward(self, input):
        """The input under another shape."""
        return input.flatten(*self._axes)


class Identity(Layer):
    """What it gets."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        """The input."""
        return input


class CosineSimilarity(Layer):
    """The cosine of the angle between two values."""

    def __init__(self, axis=1, eps=1e-8):
        super().__init__()
        self._axis, self._eps = axis, eps

    def forward(self, x1, x2):
        """A number for each pair."""
        return F.cosine_similarity(x1, x2, self._axis, self._eps)
