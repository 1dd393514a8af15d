"""paddle.dataset by its name of version 2."""

from paddle import _names

_names.alias(__name__, "paddle.dataset")
