"""The API of the 1.x releases: everything here records a static program."""

from argosy.dataset import DatasetFactory
from argosy.static import (Executor, LoDTensor, Program, Scope, Variable, create_lod_tensor,
                           default_main_program, default_startup_program, global_scope,
                           program_guard)
from paddle import _names
from paddle.fluid import layers
from paddle.fluid._data_feeder import DataFeeder
from paddle.fluid.layers import data
from paddle.fluid.transpiler.distribute_transpiler import (DistributeTranspiler,
                                                           DistributeTranspilerConfig)
from paddle.static import BuildStrategy, CompiledProgram, ExecutionStrategy

__all__ = ["BuildStrategy", "CompiledProgram", "DataFeeder", "DatasetFactory",
           "DistributeTranspiler", "DistributeTranspilerConfig", "ExecutionStrategy", "Executor",
           "LoDTensor", "Program", "Scope", "Variable", "create_lod_tensor", "data",
           "default_main_program", "default_startup_program", "global_scope", "layers",
           "program_guard"]

__getattr__, __dir__ = _names.lazy(
    __name__,
    names={"CPUPlace": "paddle:CPUPlace", "CUDAPlace": "paddle:CUDAPlace",
           "CUDAPinnedPlace": "paddle:CUDAPinnedPlace", "ParamAttr": "argosy:ParamAttr",
           "unique_name": "argosy.unique_name", "cpu_places": "paddle.static:cpu_places",
           "cuda_places": "paddle.static:cuda_places", "embedding": "argosy.static.nn:embedding",
           "is_compiled_with_cuda": "paddle:is_compiled_with_cuda",
           "dataset": "argosy.dataset"},
)
