"""Distributed training of recommendation models, and of ordinary ones."""

import os as _os

from argosy import _core
from argosy._core import ConfigError, DataError, Error, IoError
from argosy._core import __version__ as __version__

_core.add_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

__all__ = ["ConfigError", "DataError", "Error", "IoError"]
