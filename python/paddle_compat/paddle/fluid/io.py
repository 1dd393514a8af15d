"""Saving and loading of static programs."""

from typing import Any, List, Optional, Sequence

from argosy.static import (load, load_inference_model, load_persistables, save,
                           save_persistables)
from argosy.static import save_inference_model as _save_inference_model
from paddle import _names

__all__ = ["load", "load_inference_model", "load_params", "load_persistables", "save", "save_inference_model",
           "save_params", "save_persistables"]

save_params, load_params = save_persistables, load_persistables


def save_inference_model(dirname: str, feeded_var_names: Sequence[str], target_vars: Sequence[Any],
                         executor: Any, main_program: Any = None,
                         model_filename: Optional[str] = None,
                         params_filename: Optional[str] = None, export_for_deployment: bool = True,
                         program_only: bool = False) -> List[str]:
    """What the targets need, in inference mode, in a folder; returns the targets' names."""
    _save_inference_model(dirname, list(feeded_var_names), list(target_vars), executor, main_program)
    return [variable.name for variable in target_vars]


__getattr__, __dir__ = _names.lazy(__name__, names={
    "DataLoader": "argosy.io:DataLoader", "batch": "paddle:batch",
    "shuffle": "paddle.reader:shuffle", "buffered": "paddle.reader:buffered"})
