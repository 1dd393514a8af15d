"""FleetX over argosy: models, loaders and a trainer for scripts of parameter servers."""

import os as _os

from argosy import _core
from fleetx import applications
from fleetx._configs import parse_train_configs
from fleetx._trainer import CPUTrainer, Trainer
from paddle import _names

_core.add_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

__all__ = ["CPUTrainer", "Trainer", "applications", "parse_train_configs"]

__getattr__, __dir__ = _names.lazy(__name__)
