"""`fleet`: training over servers, as 1.x scripts call it."""

from typing import Any, Optional

from argosy.fleet import Fleet
from argosy.fleet._fleet import DistributedOptimizer
from argosy.fleet.transpiler import DistributeTranspilerConfig
from argosy.static import default_main_program, default_startup_program
from paddle import _names

__all__ = ["DistributeTranspilerConfig", "fleet"]


class DistributedTranspiler(Fleet):
    """Fleet whose strategy is a DistributeTranspilerConfig; without one: sync."""

    def distributed_optimizer(self, optimizer: Any,
                              strategy: Optional[DistributeTranspilerConfig] = None
                              ) -> DistributedOptimizer:
        """The optimizer, so that its minimize() is the job's."""
        self._need_init("distributed_optimizer")
        return DistributedOptimizer(self, optimizer, strategy or DistributeTranspilerConfig())

    @property
    def main_program(self) -> Any:
        """What is trained."""
        return default_main_program()

    @property
    def startup_program(self) -> Any:
        """First values."""
        return default_startup_program()

    def all_reduce_worker(self, input: Any, output: Any) -> None:
        """The sum over all workers, into the array `output`."""
        output[...] = self.util.all_reduce(input)


fleet = DistributedTranspiler()

__getattr__, __dir__ = _names.lazy(__name__)
