"""Small data sets, read from the folder ARGOSY_DATA or generated; nothing is downloaded."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)
