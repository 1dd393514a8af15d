"""fleet: this process in its job. The functions are those of one Fleet."""

from argosy.data_generator import MultiSlotDataGenerator, MultiSlotStringDataGenerator
from argosy.dataset import DatasetBase, DatasetFactory, InMemoryDataset, QueueDataset
from argosy.fleet import (DistributedStrategy, Fleet, PaddleCloudRoleMaker, Role,
                          UserDefinedRoleMaker, Util)
from paddle import _names

fleet = Fleet()
UtilBase = Util

_FUNCTIONS = [name for name in vars(Fleet) if not name.startswith("_") and name != "util"]
for _name in _FUNCTIONS:
    globals()[_name] = getattr(fleet, _name)

__all__ = ["DatasetBase", "DatasetFactory", "DistributedStrategy", "Fleet", "InMemoryDataset",
           "MultiSlotDataGenerator", "MultiSlotStringDataGenerator", "PaddleCloudRoleMaker",
           "QueueDataset", "Role", "UserDefinedRoleMaker", "UtilBase", "fleet", "util", *_FUNCTIONS]

_late, __dir__ = _names.lazy(__name__)


def __getattr__(name: str):
    return fleet.util if name == "util" else _late(name)
