"""Dynamic graphs on several ranks."""

import contextlib
import weakref
from typing import Any, Iterable, Iterator, List, Optional

from argosy import _core, distributed, nn
from argosy._autograd import after_backward

_models: "weakref.WeakSet[DataParallel]" = weakref.WeakSet()


class DataParallel(nn.Layer):
    """A model whose parameters begin as those of rank 0, and whose gradients are the mean over all
    ranks when backward() returns."""

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
            words = _words_of(strategy)
            self._gradients = _core.rank_gradients(
                group._core, layers.parameters(), find_unused_parameters, *words)
            for buffer in layers.buffers():
                distributed.broadcast(buffer, group.ranks[0], group)
            _models.add(self)
            if _reduce_reached not in after_backward:
                after_backward.append(_reduce_reached)

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


def _words_of(strategy: Any) -> tuple:
    """(deterministic, scale) of a strategy."""
    return (False, "avg") if strategy is None else strategy._of_dynamic()


def _reduce_reached() -> None:
    for model in sorted(_models, key=lambda model: model._full_name):
        if model._synchronizes:
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
        for model in sorted(self._models, key=lambda model: model._full_name):
            model._reduce_if_reached()
        if self._own is not None:
            self._own.reduce()


def _own_gradients(parameters: List[Any], strategy: Any) -> Any:
    group = distributed.init_parallel_env()
    if group.nranks == 1 or not parameters:
        return None
    return _core.rank_gradients(group._core, parameters, False, *_words_of(strategy))
