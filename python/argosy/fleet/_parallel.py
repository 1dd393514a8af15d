"""Dynamic graphs on several ranks."""

import contextlib
from typing import Any, Iterable, Iterator

import numpy as np

from argosy import _core, nn


class DataParallel(nn.Layer):
    """A model whose parameters begin as those of rank 0."""

    def __init__(self, layers: nn.Layer, fleet: Any):
        super().__init__()
        self._layers = layers
        for parameter in layers.parameters():
            fleet._core.broadcast(parameter.numpy(), 0)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """That of the model."""
        return self._layers(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients add up; they meet those of other ranks when the optimizer steps, not before."""
        yield

    def state_dict(self, *args: Any, **kwargs: Any) -> dict:
        """That of the model."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """That of the model."""
        return self._layers.set_state_dict(*args, **kwargs)


def reduce_gradients(fleet: Any, parameters: Iterable[Any]) -> None:
    """Makes the gradients of this rank the mean of all ranks', in one call."""
    if not fleet._collective or fleet.worker_num() == 1:
        return
    parameters = [p for p in parameters if not p.stop_gradient]
    missing = [p.name for p in parameters if p.grad is None]
    if missing:
        raise _core.ConfigError(f"step: {', '.join(missing)} got no gradient in this rank, so that "
                                "there is no mean over all ranks")
    rows = [p.name for p in parameters if not isinstance(p.grad, _core.Tensor)]
    if rows:
        raise _core.ConfigError(f"step: {', '.join(rows)} has a gradient of rows, which ranks of a "
                                "dynamic graph do not exchange; expected sparse=False")
    grads = [p.grad.numpy() for p in parameters]
    together = np.concatenate([grad.reshape(-1) for grad in grads])
    fleet._core.all_reduce_mean(together)
    end = 0
    for grad in grads:
        begin, end = end, end + grad.size
        grad[...] = together[begin:end].reshape(grad.shape)
