"""Parameters: values that are trained."""

from typing import Any, Optional, Union

import numpy as np

from argosy import _core, unique_name
from argosy._apply import Tensor
from argosy._mode import in_static_mode
from argosy._tensor import describe
from argosy.dtypes import dtype_name, get_default_dtype
from argosy._initializers import Assign, Initializer, default_initializer


class ParamAttr:
    """What a parameter is called, begins with and how it is trained."""

    def __init__(self, name: Optional[str] = None, initializer: Optional[Initializer] = None,
                 learning_rate: float = 1.0, regularizer=None, trainable: bool = True,
                 do_model_average: bool = True, need_clip: bool = True):
        if not do_model_average:
            raise _core.ConfigError("ParamAttr: do_model_average=False is not supported")
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.need_clip = need_clip

    def __repr__(self) -> str:
        return f"ParamAttr(name={self.name!r}, trainable={self.trainable})"

    @staticmethod
    def of(attr: Any) -> Union["ParamAttr", bool]:
        """A ParamAttr from what layers take: one, None, a name, an initializer or False."""
        if attr is None or attr is True:
            return ParamAttr()
        if isinstance(attr, (ParamAttr, bool)):
            return attr
        if isinstance(attr, str):
            return ParamAttr(name=attr)
        if isinstance(attr, Initializer):
            return ParamAttr(initializer=attr)
        if hasattr(attr, "_text"):
            return ParamAttr(regularizer=attr)
        raise _core.ConfigError(f"a ParamAttr, a name, an initializer or False, not {attr!r}")


class Parameter(Tensor):
    """A Tensor that optimizers update."""

    def __init__(self, data, trainable: bool = True, attr: Optional[ParamAttr] = None,
                 name: str = ""):
        super().__init__(data, stop_gradient=not trainable)
        attr = attr or ParamAttr()
        self.name = name
        self.persistable = True
        self.optimize_attr = {"learning_rate": attr.learning_rate}
        self.regularizer = attr.regularizer
        self.need_clip = attr.need_clip

    @property
    def trainable(self) -> bool:
        """False: optimizers leave it alone."""
        return not self.stop_gradient

    @trainable.setter
    def trainable(self, value: bool) -> None:
        self.stop_gradient = not value

    def __repr__(self) -> str:
        return "Parameter containing:\n" + describe(self)

    def _attr(self) -> ParamAttr:
        return ParamAttr(self.name, None, self.optimize_attr["learning_rate"], self.regularizer,
                         self.trainable, need_clip=self.need_clip)

    def __reduce__(self):
        return _restored, (np.array(self.numpy()), self.trainable, self._attr(), self.name)

    def __deepcopy__(self, memo):
        copy = _restored(np.array(self.numpy()), self.trainable, self._attr(),
                         unique_name.generate(self.name))
        memo[id(self)] = copy
        return copy


def _restored(array, trainable, attr, name) -> Parameter:
    return Parameter(array, trainable, attr, name)


EagerParamBase = Parameter


def create_parameter(shape, dtype=None, attr=None, is_bias: bool = False, default_init=None,
                     name_hint: str = "create_parameter"):
    """A parameter of this mode: a Parameter, or a Variable of the default program."""
    attr = ParamAttr.of(attr)
    if attr is False:
        return None
    shape = [int(size) for size in shape]
    dtype = dtype_name(dtype or get_default_dtype())
    init = attr.initializer or default_init or default_initializer(is_bias)
    name = attr.name or unique_name.generate(f"{name_hint}.{'b' if is_bias else 'w'}")
    if in_static_mode():
        from argosy.static import default_main_program

        return default_main_program().record.parameter(name, shape, dtype, init._text(shape),
                                                       attr.trainable, attr)
    if dtype != "float32":
        raise _core.ConfigError(f"parameter '{name}' is {dtype}: parameters are float32")
    if isinstance(init, Assign):
        parameter = Parameter(_core.empty(shape, dtype), attr.trainable, attr, name)
        return init(parameter)
    first = _core.first_values(init._text(shape), shape, name)
    return Parameter(first, attr.trainable, attr, name)
