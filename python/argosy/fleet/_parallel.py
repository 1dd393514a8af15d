"""Dynamic graphs on several ranks."""

import contextlib
import weakref
from typing import Any, Iterable, Iterator, List, Optional

from argosy import _autograd, _core, distributed, nn

_MB = 1024 * 1024
_models: "weakref.WeakSet[DataParallel]" = weakref.WeakSet()


class DataParallel(nn.Layer):
    """A model whose parameters begin as those of rank 0, and whose gradients are the mean over all
    ranks when backward() returns. Where ranks are on several hosts, or leave cores free, gradients
    are sent while backward() still runs: about comm_buffer_size MB at once, last_comm_buffer_size
    of the first parameters."""

    def __init__(self, layers: nn.Layer, strategy: Any = None, comm_buffer_size: int = 25,
                 last_comm_buffer_size: float = 1, find_unused_parameters: bool = False,
                 group: Optional[distributed.Group] = None):
        super().__init__()
        self._layers = layers
        self.find_unused_parameters = find_unused_parameters
        self._synchronizes = True
        self._gradients = None
        group = group or distributed.init_parallel_env()
        if group.nranks > 1:
            self._gradients = _rank_gradients(
                group, layers.parameters(), strategy, find_unused_parameters, comm_buffer_size,
                last_comm_buffer_size)
            for buffer in layers.buffers():
                distributed.broadcast(buffer, group.ranks[0], group)
            _models.add(self)
            _autograd.backward_of_ranks = _backward

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """That of the model."""
        return self._layers(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients add up in this rank; they meet those of other ranks in the next backward() that
        is outside, or when a distributed optimizer steps."""
        before, self._synchronizes = self._synchronizes, False
        try:
            yield
        finally:
            self._synchronizes = before

    def scale_loss(self, loss: Any) -> Any:
        """The loss: gradients are divided when they are exchanged."""
        return loss

    def apply_collective_grads(self) -> None:
        """Nothing: backward() exchanges the gradients."""

    def _reduce_if_reached(self) -> None:
        if self._gradients is not None and self._gradients.reached():
            self._gradients.reduce()

    def state_dict(self, *args: Any, **kwargs: Any) -> dict:
        """That of the model."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of the model."""
        return self._layers.set_state_dict(*args, **kwargs)

    set_dict = load_dict = set_state_dict


def _rank_gradients(group: distributed.Group, parameters: List[Any], strategy: Any,
                    find_unused: bool = False, comm_buffer_size: float = 25,
                    last_comm_buffer_size: float = 1) -> Any:
    if comm_buffer_size <= 0 or last_comm_buffer_size <= 0:
        raise _core.ConfigError(
            f"DataParallel: comm_buffer_size={comm_buffer_size} and last_comm_buffer_size="
            f"{last_comm_buffer_size}, expected more than 0 MB")
    words = (False, "avg") if strategy is None else strategy._of_dynamic()
    return _core.rank_gradients(group._core, parameters, find_unused, *words,
                                int(comm_buffer_size * _MB), int(last_comm_buffer_size * _MB))


def _backward(tensor: Any, grad_tensor: Any, retain_graph: bool) -> None:
    models = sorted(_models, key=lambda model: model.full_name())
    synchronizing = [model for model in models if model._synchronizes]
    # Gradients of several models would be sent in an order that may not be that of other ranks.
    if len(models) == len(synchronizing) == 1:
        models[0]._gradients.backward(tensor, grad_tensor, retain_graph)
    else:
        tensor._backward(grad_tensor, retain_graph)
    for model in synchronizing:
        model._reduce_if_reached()


class StepGradients:
    """The gradients that an optimizer of ranks steps with: those of models made by DataParallel are
    exchanged already, unless no_sync held them back; others are when the optimizer steps."""

    def __init__(self, parameters: Iterable[Any], strategy: Any):
        parameters = list(parameters)
        self._models = [model for model in _models
                        if any(p is q for p in parameters for q in model.parameters())]
        known = {id(q) for model in self._models for q in model.parameters()}
        self._own = _own_gradients([p for p in parameters if id(p) not in known], strategy)

    def reduce(self) -> None:
        """Makes them the mean over all ranks."""
        for model in sorted(self._models, key=lambda model: model.full_name()):
            model._reduce_if_reached()
        if self._own is not None:
            self._own.reduce()


def _own_gradients(parameters: List[Any], strategy: Any) -> Any:
    group = distributed.init_parallel_env()
    if group.nranks == 1 or not parameters:
        return None
    return _rank_gradients(group, parameters, strategy)
