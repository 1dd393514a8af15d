"""This process in its job: servers hold parameters, workers compute."""

from argosy.fleet._fleet import (DistributedOptimizer, Fleet, PaddleCloudRoleMaker, Role, Util,
                                 UserDefinedRoleMaker)
from argosy.fleet._parallel import DataParallel
from argosy.fleet._strategy import DistributedStrategy

__all__ = ["DataParallel", "DistributedOptimizer", "DistributedStrategy", "Fleet",
           "PaddleCloudRoleMaker", "Role", "UserDefinedRoleMaker", "Util"]


def _leave_all() -> None:
    for fleet in Fleet._all:
        fleet._leave()
