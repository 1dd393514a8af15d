"""What `paddle` itself has of Tensors: functions, types, parameters and modes."""

from argosy import _functions
from argosy._apply import Tensor
from argosy._functions import *  # noqa: F401, F403
from argosy._mode import disable_static, enable_static, in_dynamic_mode
from argosy._parameters import ParamAttr
from argosy._parameters import create_parameter as _create_parameter
from argosy.dtypes import (float32, float64, get_default_dtype, int32, int64, set_default_dtype,
                           uint8)

bool = "bool"
dtype = str


def create_parameter(shape, dtype, name=None, attr=None, is_bias=False, default_initializer=None):
    """A parameter that belongs to no layer."""
    attr = ParamAttr.of(attr)
    if name is not None and attr is not False and attr.name is None:
        attr.name = name
    return _create_parameter(shape, dtype, attr, is_bias, default_initializer)


__all__ = ["ParamAttr", "Tensor", "bool", "create_parameter", "disable_static", "dtype",
           "enable_static", "float32", "float64", "get_default_dtype", "in_dynamic_mode", "int32",
           "int64", "set_default_dtype", "uint8", *_functions.__all__]
