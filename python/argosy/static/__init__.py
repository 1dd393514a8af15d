"""Static graphs: programs that are recorded first and run later."""

from argosy.static import nn
from argosy.static._executor import Executor, LoDTensor, create_lod_tensor
from argosy.static._io import (Scope, global_scope, load, load_inference_model, load_persistables,
                               save, save_inference_model, save_persistables)
from argosy.static._metrics import accuracy, auc
from argosy.static._program import (Parameter, Program, Variable, data, default_main_program,
                                    default_startup_program, program_guard)

__all__ = ["Executor", "LoDTensor", "Parameter", "Program", "Scope", "Variable", "accuracy", "auc",
           "create_lod_tensor", "data", "default_main_program", "default_startup_program",
           "global_scope", "load", "load_inference_model", "load_persistables", "nn", "program_guard", "save",
           "save_inference_model", "save_persistables"]
