"""Names that older scripts take from paddle.framework."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__, sources=["paddle._tensor_api"])
