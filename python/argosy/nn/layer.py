"""Layers: functions with parameters."""

import collections
import re
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from argosy import _core, unique_name
from argosy._apply import Tensor, is_variable
from argosy._parameters import Parameter, create_parameter
from argosy.dtypes import dtype_name, get_default_dtype


def _is_parameter(value) -> bool:
    return isinstance(value, Parameter) or (is_variable(value) and value.persistable
                                            and not isinstance(value, Tensor))


class HookRemoveHelper:
    """Takes a hook away."""

    def __init__(self, hooks: dict, key: int):
        self._hooks, self._key = hooks, key

    def remove(self) -> None:
        """The hook is not called any more."""
        self._hooks.pop(self._key, None)


class Layer:
    """A function with parameters and layers of its own; forward() is what it computes."""

    def __init__(self, name_scope: Optional[str] = None, dtype: str = "float32"):
        prefix = name_scope or re.sub(r"(?<!^)(?=[A-Z][a-z])", "_", type(self).__name__).lower()
        self.__dict__.update(
            _full_name=unique_name.generate(prefix), _dtype=dtype, training=True,
            _parameters=collections.OrderedDict(), _sub_layers=collections.OrderedDict(),
            _buffers=collections.OrderedDict(), _unsaved=set(), _pre_hooks={}, _post_hooks={})

    def forward(self, *inputs, **kwargs):
        """What the layer computes; each layer has its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward")

    def __call__(self, *inputs, **kwargs):
        for hook in self._pre_hooks.values():
            changed = hook(self, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = self.forward(*inputs, **kwargs)
        for hook in self._post_hooks.values():
            changed = hook(self, inputs, outputs)
            outputs = outputs if changed is None else changed
        return outputs

    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            if _is_parameter(value) or isinstance(value, Layer):
                raise _core.ConfigError(f"call super().__init__() of {type(self).__name__} before "
                                        f"'{name}' is set")
            return object.__setattr__(self, name, value)
        kinds = (self._parameters, self._sub_layers, self._buffers)
        if name in self._buffers and isinstance(value, Tensor) and not _is_parameter(value):
            self._buffers[name] = value
            return None
        home = (self._parameters if _is_parameter(value) and name not in self._buffers else
                self._sub_layers if isinstance(value, Layer) else None)
        for kind in kinds:
            kind.pop(name, None)
        if home is None:
            object.__setattr__(self, name, value)
        else:
            self.__dict__.pop(name, None)
            home[name] = value
        return None

    def __getattr__(self, name: str) -> Any:
        for kind in ("_parameters", "_sub_layers", "_buffers"):
            members = self.__dict__.get(kind)
            if members is not None and name in members:
                return members[name]
        raise AttributeError(f"{type(self).__name__} has no '{name}'")

    def __delattr__(self, name: str) -> None:
        for kind in (self._parameters, self._sub_layers, self._buffers):
            if name in kind:
                del kind[name]
                return
        object.__delattr__(self, name)

    def __dir__(self):
        return [*super().__dir__(), *self._parameters, *self._sub_layers, *self._buffers]

    def full_name(self) -> str:
        """The layer's own name: linear_0."""
        return self._full_name

    def create_parameter(self, shape, attr=None, dtype=None, is_bias=False,
                         default_initializer=None):
        """A parameter named after this layer."""
        return create_parameter(shape, dtype or self._dtype, attr, is_bias, default_initializer,
                                self._full_name)

    def add_parameter(self, name: str, parameter):
        """Adds a parameter under a name, or None for one that is absent."""
        if parameter is not None and not _is_parameter(parameter):
            raise TypeError(f"'{name}' is {type(parameter).__name__}, expected a parameter")
        if parameter is None:
            object.__setattr__(self, name, None)
        else:
            setattr(self, name, parameter)
        return parameter

    def add_sublayer(self, name: str, sublayer: "Layer") -> "Layer":
        """Adds a layer under a name."""
        if not isinstance(sublayer, Layer):
            raise TypeError(f"'{name}' is {type(sublayer).__name__}, expected a Layer")
        self._sub_layers[str(name)] = sublayer
        return sublayer

    def register_buffer(self, name: str, tensor, persistable: bool = True) -> None:
        """Adds a value that is kept and saved with the layer, but not trained."""
        self._buffers[name] = tensor
        if not persistable:
            self._unsaved.add(name)

    def register_forward_pre_hook(self, hook: Callable) -> HookRemoveHelper:
        """hook(layer, inputs) before forward; what it returns replaces the inputs."""
        return self._hooked(self._pre_hooks, hook)

    def register_forward_post_hook(self, hook: Callable) -> HookRemoveHelper:
        """hook(layer, inputs, outputs) after forward; what it returns replaces the outputs."""
        return self._hooked(self._post_hooks, hook)

    @staticmethod
    def _hooked(hooks: dict, hook: Callable) -> HookRemoveHelper:
        key = max(hooks, default=0) + 1
        hooks[key] = hook
        return HookRemoveHelper(hooks, key)

    def train(self) -> None:
        """From now on dropout drops and batch norms move."""
        self._set_training(True)

    def eval(self) -> None:
        """The opposite of train."""
        self._set_training(False)

    def _set_training(self, on: bool) -> None:
        for layer in self.sublayers(include_self=True):
            layer.training = on

    def named_children(self) -> Iterator[Tuple[str, "Layer"]]:
        """The layers right below, with their names."""
        return ((name, layer) for name, layer in self._sub_layers.items() if layer is not None)

    def children(self) -> Iterator["Layer"]:
        """The layers right below."""
        return (layer for _, layer in self.named_children())

    def named_sublayers(self, prefix: str = "", include_self: bool = False,
                        layers_set=None) -> Iterator[Tuple[str, "Layer"]]:
        """All layers below, with their names."""
        seen = set() if layers_set is None else layers_set
        if include_self and id(self) not in seen:
            seen.add(id(self))
            yield prefix, self
        for name, layer in self.named_children():
            full = f"{prefix}.{name}" if prefix else name
            yield from layer.named_sublayers(full, True, seen)

    def sublayers(self, include_self: bool = False) -> List["Layer"]:
        """All layers below."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def _members(self, kind: str, prefix: str, deep: bool) -> Iterator[Tuple[str, Any]]:
        seen = set()
        layers = self.named_sublayers(prefix, True) if deep else [(prefix, self)]
        for path, layer in layers:
            for name, value in getattr(layer, kind).items():
                if value is not None and id(value) not in seen:
                    seen.add(id(value))
                    yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix: str = "", include_sublayers: bool = True):
        """All parameters, with their names."""
        return self._members("_parameters", prefix, include_sublayers)

    def parameters(self, include_sublayers: bool = True) -> list:
        """All parameters."""
        return [value for _, value in self.named_parameters("", include_sublayers)]

    def named_buffers(self, prefix: str = "", include_sublayers: bool = True):
        """All buffers, with their names."""
        return self._members("_buffers", prefix, include_sublayers)

    def buffers(self, include_sublayers: bool = True) -> list:
        """All buffers."""
        return [value for _, value in self.named_buffers("", include_sublayers)]

    def apply(self, fn: Callable[["Layer"], None]) -> "Layer":
        """Calls fn with every layer below and with this one."""
        for layer in self.children():
            layer.apply(fn)
        fn(self)
        return self

    def clear_gradients(self) -> None:
        """Forgets the gradients of all parameters."""
        for parameter in self.parameters():
            parameter.clear_grad()

    def state_dict(self, destination=None, include_sublayers: bool = True,
                   structured_name_prefix: str = "", use_hook: bool = True) -> Dict[str, Any]:
        """Parameters and buffers by name."""
        state = collections.OrderedDict() if destination is None else destination
        layers = (self.named_sublayers(include_self=True) if include_sublayers else [("", self)])
        for path, layer in layers:
            kept = {name: value for name, value in layer._buffers.items()
                    if name not in layer._unsaved}
            for name, value in [*layer._parameters.items(), *kept.items()]:
                if value is not None:
                    state[structured_name_prefix + (f"{path}.{name}" if path else name)] = value
        return state

    def set_state_dict(self, state_dict: Dict[str, Any], use_structured_name: bool = True):
        """Takes the numbers of a state_dict; returns the names that were missing and unexpected."""
        own = self.state_dict()
        if not use_structured_name:
            own = {value.name: value for value in own.values()}
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        for name, value in own.items():
            if name not in state_dict:
                continue
            fresh = state_dict[name]
            array = fresh.numpy() if isinstance(fresh, Tensor) else np.asarray(fresh)
            array = array.astype(value.dtype, copy=False)
            if array.size != value.size or list(array.shape) != list(value.shape) != [1]:
                raise _core.ConfigError(f"'{name}' is {list(value.shape)}, the state has "
                                        f"{list(array.shape)}")
            value.set_value(array.reshape(value.shape))
        return missing, unexpected

    set_dict = load_dict = set_state_dict

    def to(self, device=None, dtype=None, blocking=None) -> "Layer":
        """Layers live on the CPU as float32; anything else is refused."""
        if dtype is not None and dtype_name(dtype) != get_default_dtype():
            raise _core.ConfigError(f"a layer as {dtype}: parameters are float32")
        if device is not None and "cpu" not in str(device).lower():
            raise _core.ConfigError(f"no device '{device}', there is the cpu")
        return self

    def extra_repr(self) -> str:
        """What a layer says of itself inside the brackets of its repr."""
        return ""

    def __repr__(self) -> str:
        inside = [self.extra_repr()] if self.extra_repr() else []
        for name, layer in self._sub_layers.items():
            inside.append(f"({name}): " + repr(layer).replace("\n", "\n  "))
        name = type(self).__name__
        if not self._sub_layers:
            return f"{name}({', '.join(inside)})"
        return name + "(\n  " + "\n  ".join(inside) + "\n)"
