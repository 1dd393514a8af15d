"""This process in its job: servers hold parameters, workers compute."""

from typing import Any

from argosy.fleet._fleet import (DistributedOptimizer, Fleet, PaddleCloudRoleMaker, Role, Util,
                                 UserDefinedRoleMaker)
from argosy.fleet._parallel import DataParallel
from argosy.fleet._strategy import DistributedStrategy

__all__ = ["DataParallel", "DistributedOptimizer", "DistributedStrategy", "Fleet",
           "PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker", "Util"]


def leave_all() -> None:
    """Leaves the jobs of all fleets of this process."""
    for fleet in Fleet._all:
        fleet._leave()


def sum_over_ranks() -> Any:
    """What adds up over the ranks of this process' job; None: it is alone."""
    for fleet in Fleet._all:
        if fleet._initialised and fleet._collective and fleet.worker_num() > 1:
            return fleet._core.sum_over_ranks()
    return None
