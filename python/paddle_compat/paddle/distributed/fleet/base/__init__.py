"""Parts of fleet by their own names."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)
