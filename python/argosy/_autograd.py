"""Gradients of dynamic graphs."""

import functools
from typing import Any, Callable, List, Optional

from argosy import _core
from argosy._apply import Tensor


# Makes Tensor.backward(grad_tensor, retain_graph) where there are models of several ranks.
backward_of_ranks: Optional[Callable[[Tensor, Any, bool], None]] = None


class no_grad:
    """What is computed inside, or by a function that it decorates, forgets where it comes from."""

    _records = False

    def __init__(self, func=None):
        self._func = func
        self._before = []
        if func is not None:
            functools.update_wrapper(self, func)

    def __enter__(self):
        self._before.append(_core.records())
        _core.set_records(self._records)

    def __exit__(self, *error):
        _core.set_records(self._before.pop())

    def __call__(self, *args, **kwargs):
        if self._func is not None:
            with type(self)():
                return self._func(*args, **kwargs)
        return _decorated(type(self), *args)

    def __get__(self, instance, owner=None):
        return functools.partial(self.__call__, instance) if instance is not None else self


class enable_grad(no_grad):
    """Ends no_grad inside."""

    _records = True


def _decorated(scope, func):
    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        with scope():
            return func(*args, **kwargs)

    return wrapped


class set_grad_enabled:
    """Switches recording on or off; as a context manager, until its end."""

    def __init__(self, mode: bool):
        self._before = _core.records()
        _core.set_records(bool(mode))

    def __enter__(self):
        pass

    def __exit__(self, *error):
        _core.set_records(self._before)


def is_grad_enabled() -> bool:
    """False inside no_grad."""
    return _core.records()


def _list(values) -> list:
    return list(values) if isinstance(values, (list, tuple)) else [values]


def grad(outputs, inputs, grad_outputs=None, retain_graph: Optional[bool] = None,
         create_graph: bool = False, only_inputs: bool = True, allow_unused: bool = False,
         no_grad_vars=None) -> List[Optional[Tensor]]:
    """The gradients of the sum of the outputs with respect to the inputs."""
    if create_graph or not only_inputs or no_grad_vars:
        raise _core.ConfigError("grad: create_graph, only_inputs=False and no_grad_vars are not "
                                "supported")
    targets = _list(inputs)
    seeds = [] if grad_outputs is None else _list(grad_outputs)
    found = _core.gradients(_list(outputs), seeds, targets, bool(retain_graph))
    if not allow_unused and any(gradient is None for gradient in found):
        missing = next(i for i, gradient in enumerate(found) if gradient is None)
        raise _core.ConfigError(f"grad: the outputs do not depend on input {missing}; "
                                "allow_unused=True gives None for it")
    return found


def backward(tensors, grad_tensors=None, retain_graph: bool = False) -> None:
    """Runs backward from several Tensors."""
    tensors = _list(tensors)
    seeds = [None] * len(tensors) if grad_tensors is None else _list(grad_tensors)
    for i, (tensor, seed) in enumerate(zip(tensors, seeds)):
        tensor.backward(seed, retain_graph or i + 1 < len(tensors))
