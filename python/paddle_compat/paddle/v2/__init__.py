"""The names of version 2 that fluid scripts of that time import: data sets, readers, batches."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__, names={"batch": "argosy.reader:batch"})
