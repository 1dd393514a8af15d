"""What only Tensors have: numbers that can be seen."""

import numpy as np

from argosy import _autograd, _core
from argosy._apply import Tensor
from argosy._operators import Operators
from argosy._shaping import clone, setitem


def _numpy(self) -> np.ndarray:
    """An array over the Tensor's memory: a change of one is a change of the other."""
    return self._array()


def _array(self, dtype=None, copy=None):
    array = self._array()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return np.array(array) if copy else array


def _item(self, *place):
    """One element as a Python number."""
    return self._array().item(*place)


def describe(self) -> str:
    body = np.array2string(self._array(), separator=", ", prefix=" " * 7)
    return (f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, place=Place(cpu), "
            f"stop_gradient={self.stop_gradient},\n       {body})")


def _len(self) -> int:
    return self.shape[0] if self.shape else 1


def _iter(self):
    return (self[i] for i in range(len(self)))


def _bool(self) -> bool:
    if self.size != 1:
        raise _core.ConfigError(f"only one element is true or false, this Tensor is {self.shape}")
    return bool(self.item())


def _index(self) -> int:
    if self.dtype not in ("int32", "int64", "uint8"):
        raise TypeError(f"a {self.dtype} Tensor is no index")
    return int(self.item())


def _backward(self, grad_tensor=None, retain_graph: bool = False) -> None:
    """Adds the gradients to those of the Tensors that this one was computed from."""
    if _autograd.backward_of_ranks is None:
        self._backward(grad_tensor, retain_graph)
    else:
        _autograd.backward_of_ranks(self, grad_tensor, retain_graph)


def _clear_grad(self, set_to_zero: bool = False) -> None:
    """Forgets the gradient, or makes it zeros."""
    if set_to_zero and self.grad is not None:
        self.grad = _core.empty(self.shape, self.dtype)
    else:
        self.grad = None


def _in_place(function):
    def method(self, *args, **kwargs):
        self._take(function(self, *args, **kwargs))
        return self

    method.__doc__ = "The same, but this Tensor becomes the result."
    return method


def _filled(self, value):
    return Tensor(np.full(self.shape, value, dtype=self.dtype))


def _reduce(self):
    state = (np.array(self._array()).reshape(self.shape), self.stop_gradient, self.name,
             self.persistable)
    return _restored, state


def _restored(array, stop_gradient, name, persistable):
    tensor = Tensor(array, stop_gradient=stop_gradient)
    tensor.name, tensor.persistable = name, persistable
    return tensor


def _deepcopy(self, memo):
    if not self.is_leaf:
        raise _core.ConfigError("only leaves can be copied deeply; clone() keeps the graph")
    copy = _restored(*_reduce(self)[1])
    memo[id(self)] = copy
    return copy


def _to(self, *args, **kwargs):
    """The same as another type; the only place is the CPU."""
    dtype = kwargs.pop("dtype", None)
    for arg in args:
        if isinstance(arg, str) and arg.split(":")[0] not in ("cpu",):
            dtype = arg
    return self.astype(dtype) if dtype is not None else self


def _gradient(self):
    """The gradient as an array, or None."""
    gradient = self.grad
    if gradient is None:
        return None
    return (gradient.dense(self.shape) if isinstance(gradient, _core.RowGradient)
            else gradient).numpy()


def _install():
    for name, member in vars(Operators).items():
        if name not in ("__slots__", "__doc__", "__module__", "__dict__", "__weakref__"):
            setattr(Tensor, name, member)
    methods = {
        "numpy": _numpy, "__array__": _array, "item": _item, "__repr__": describe, "__len__": _len,
        "backward": _backward, "__iter__": _iter, "__bool__": _bool, "__index__": _index,
        "clear_grad": _clear_grad, "clear_gradient": _clear_grad, "__setitem__": setitem,
        "__reduce__": _reduce,
        "__deepcopy__": _deepcopy, "clone": clone, "to": _to, "gradient": _gradient,
        "__float__": lambda self: float(self.item()), "__int__": lambda self: int(self.item()),
        "__format__": lambda self, spec: (format(self.item(), spec) if spec and self.size == 1
                                          else str(self)),
        "tolist": lambda self: self._array().tolist(), "cpu": lambda self: self,
        "numel": lambda self: self.size, "element_size": lambda self: self._array().itemsize,
        "__dlpack__": lambda self, **options: self._array().__dlpack__(**options),
        "__dlpack_device__": lambda self: (1, 0),
        "fill_": _in_place(_filled), "zero_": _in_place(lambda self: _filled(self, 0)),
        "place": property(lambda self: "Place(cpu)"),
    }
    for name in "add subtract multiply divide scale clip exp sqrt tanh reshape squeeze unsqueeze " \
                "flatten floor round ceil".split():
        methods[name + "_"] = _in_place(getattr(Operators, name))
    for name, member in methods.items():
        setattr(Tensor, name, member)
    Tensor.__module__ = "argosy"


_install()
