"""Distributed training of recommendation models, and of ordinary ones."""

import os as _os

from argosy import _core
from argosy._core import ConfigError, DataError, Error, IoError
from argosy._core import __version__ as __version__

_core.add_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

from argosy import _functions, nn, optimizer, regularizer, unique_name  # noqa: E402
from argosy._apply import Tensor  # noqa: E402
from argosy._check_nan import set_check_nan  # noqa: E402
from argosy._functions import *  # noqa: E402, F401, F403
from argosy._mode import (disable_static, enable_static, in_dynamic_mode,  # noqa: E402
                          in_static_mode)
from argosy._parameters import ParamAttr, Parameter, create_parameter  # noqa: E402
from argosy.dtypes import (float32, float64, get_default_dtype, int32, int64,  # noqa: E402
                           set_default_dtype, uint8)

__all__ = ["ConfigError", "DataError", "Error", "IoError", "ParamAttr", "Parameter", "Tensor",
           "create_parameter", "disable_static", "enable_static", "float32", "float64",
           "get_default_dtype", "in_dynamic_mode", "in_static_mode", "int32", "int64", "nn",
           "optimizer", "regularizer", "set_check_nan", "set_default_dtype", "uint8", "unique_name",
           *_functions.__all__]

_LATE = ("data_generator", "dataset", "fleet", "io", "metric", "places", "reader", "samples",
         "static", "vision")


def __getattr__(name: str):
    if name in _LATE:
        import importlib

        return importlib.import_module(f"argosy.{name}")
    raise AttributeError(f"argosy has no '{name}'")


def __dir__():
    return sorted([*globals(), *_LATE])
