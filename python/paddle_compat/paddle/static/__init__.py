"""Static graphs."""

from argosy.static import (Executor, Parameter, Program, Scope, Variable, accuracy, auc, data,
                           default_main_program, default_startup_program, global_scope,
                           load, load_inference_model, program_guard, save, save_inference_model)
from paddle import _names
from paddle.static import nn
from paddle.static._compiled import BuildStrategy, CompiledProgram, ExecutionStrategy
from paddle.static._places import cpu_places, cuda_places

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "Executor", "Parameter",
           "Program", "Scope", "Variable", "accuracy", "auc", "cpu_places", "cuda_places", "data",
           "default_main_program", "default_startup_program", "global_scope", "load", "load_inference_model", "nn",
           "program_guard", "save", "save_inference_model"]

__getattr__, __dir__ = _names.lazy(__name__, names={
    "create_parameter": "argosy._parameters:create_parameter",
    "InputSpec": "paddle.static._compiled:InputSpec",
})
