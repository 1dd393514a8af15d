"""Parameter servers of the 1.x releases."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)
