"""Convolutions."""

import math

from argosy import _core
from argosy._initializers import Normal
from argosy.nn import functional as F
from argosy.nn.layer import Layer


class _Conv(Layer):
    _axes = 0
    _default_format = ""

    def __init__(self, in_channels, out_channels, kernel_size, stride=1, padding=0, dilation=1,
                 groups=1, padding_mode="zeros", weight_attr=None, bias_attr=None,
                 data_format=None):
        super().__init__()
        if padding_mode != "zeros":
            raise _core.ConfigError(f"padding_mode '{padding_mode}' is not supported, only zeros")
        kernel = (list(kernel_size) if isinstance(kernel_size, (list, tuple))
                  else [kernel_size] * self._axes)
        self._settings = dict(stride=stride, padding=padding, dilation=dilation, groups=groups,
                              data_format=data_format or self._default_format)
        shape = [out_channels, in_channels // groups, *kernel]
        deviation = math.sqrt(2.0 / math.prod(shape[1:]))
        self.weight = self.create_parameter(shape, weight_attr,
                                            default_initializer=Normal(0.0, deviation))
        self.add_parameter("bias", self.create_parameter([out_channels], bias_attr, is_bias=True))

    def extra_repr(self):
        """Its sizes."""
        return f"{list(self.weight.shape)}, {self._settings}"


class Conv1D(_Conv):
    """Filters over sequences [batch, channels, length]."""

    _axes, _default_format = 1, "NCL"

    def forward(self, x):
        """The filters' sums for each window."""
        return F.conv1d(x, self.weight, self.bias, **self._settings)


class Conv2D(_Conv):
    """Filters over pictures [batch, channels, height, width]."""

    _axes, _default_format = 2, "NCHW"

    def forward(self, x):
        """The filters' sums for each window."""
        return F.conv2d(x, self.weight, self.bias, **self._settings)
