"""Layers of static programs: functions that add operators and parameters."""

from typing import Any, Optional, Sequence

import numpy as np

from argosy import _core, unique_name
from argosy._apply import apply_one
from argosy._parameters import ParamAttr, create_parameter
from argosy.nn import functional as F
from argosy.nn.initializer import Initializer, XavierUniform
from argosy.static._record import Lookup, RowsOf, Variable


def fc(x: Any, size: int, num_flatten_dims: int = 1, weight_attr: Any = None, bias_attr: Any = None,
       activation: Optional[str] = None, name: Optional[str] = None) -> Variable:
    """activation(x w + b) over the axes behind num_flatten_dims; several inputs are added up."""
    inputs = list(x) if isinstance(x, (list, tuple)) else [x]
    layer = name or unique_name.generate("fc")
    attrs = weight_attr if isinstance(weight_attr, (list, tuple)) else [weight_attr] * len(inputs)
    flat = [_flattened(value, num_flatten_dims) for value in inputs]
    weights = [create_parameter([x.shape[-1], size], "float32", attr, name_hint=layer)
               for (x, _), attr in zip(flat, attrs)]
    bias = create_parameter([size], "float32", bias_attr, is_bias=True, name_hint=layer)
    total = None
    for (value, outer), weight in zip(flat, weights):
        operands = [value, weight] + ([bias] if total is None and bias is not None else [])
        out = apply_one("linear", operands, {})
        out = out if outer is None else out.reshape(outer + [size])
        total = out if total is None else total + out
    return _activated(total, activation)


def _flattened(x: Variable, axes: int):
    shape = x.shape
    axes = axes if axes >= 0 else len(shape) + axes
    if len(shape) == 2 and axes == 1:
        return x, None
    inner = int(np.prod(shape[axes:], dtype=np.int64))
    if -1 in shape[axes:]:
        raise _core.ConfigError(f"fc: '{x.name}' is {shape}, expected known sizes from axis {axes}")
    return x.reshape([-1, inner]), None if axes == 1 else shape[:axes]


def _activated(x: Variable, activation: Optional[str]) -> Variable:
    if activation is None:
        return x
    function = getattr(F, activation, None)
    if function is None:
        raise _core.ConfigError(f"no activation '{activation}'")
    return function(x)


def embedding(input: Variable, size: Sequence[int], is_sparse: bool = False,
              is_distributed: bool = False, padding_idx: Optional[int] = None,
              param_attr: Any = None, dtype: str = "float32") -> Variable:
    """Rows of a table of size [rows, dim] by ids: [..., dim]. With is_sparse and fed ids a step
    touches only the rows it uses."""
    rows = lookup(input, size, param_attr, padding_idx, is_sparse or is_distributed, dtype)
    return rows.reshape(input.shape + [int(size[1])]) if rows.shape != input.shape + [int(size[1])] \
        else rows


def sparse_embedding(input: Variable, size: Sequence[int], padding_idx: Optional[int] = None,
                     is_test: bool = False, entry: Any = None,
                     table_class: str = "MemorySparseTable", param_attr: Any = None,
                     dtype: str = "float32", slot: Any = None) -> Variable:
    """Rows of a table that grows with the ids it sees, whatever size[0] says: [..., dim]."""
    if is_test or table_class not in ("MemorySparseTable", "CommonSparseTable") or slot is not None:
        raise _core.ConfigError(f"sparse_embedding: is_test={is_test}, table_class={table_class!r}, "
                                f"slot={slot!r}: expected False, 'MemorySparseTable' and None")
    if _fed_ids(input) is None:
        raise _core.ConfigError(f"sparse_embedding: '{input.name}' is computed, expected a variable "
                                "that is fed: its rows are fetched before the program runs")
    text = "" if entry is None else entry._text()
    rows = lookup(input, [0, size[1]], param_attr, padding_idx, True, dtype, text)
    return rows.reshape(input.shape + [int(size[1])])


def lookup(ids: Variable, size: Sequence[int], attr: Any, padding_idx: Optional[int], sparse: bool,
           dtype: str, entry: str = "", pool: str = "") -> Variable:
    """What the embeddings of all releases come down to: [batch, dim] of one id for each
    instance, else [..., dim]."""
    if dtype != "float32":
        raise _core.ConfigError(f"embedding: rows of {dtype}, expected float32")
    count, dim = int(size[0]), int(size[1])
    attr = ParamAttr.of(attr)
    fed = _fed_ids(ids) if sparse else None
    if padding_idx is not None and padding_idx < 0:
        padding_idx += count
    if fed is None:
        weight = create_parameter([count, dim], dtype, attr, name_hint=_layer(attr),
                                  default_init=XavierUniform())
        attrs = {} if padding_idx is None else {"padding_idx": int(padding_idx)}
        flat = ids.reshape([-1]) if len(ids.shape) == 2 and ids.shape[1] == 1 else ids
        return apply_one("embedding", [weight, flat], attrs)
    init: Initializer = attr.initializer or XavierUniform()
    name = attr.name or unique_name.generate(f"{_layer(attr)}.w")
    use = Lookup(name, dim, count, init._text([count or 1, dim]), pool, padding_idx)
    rows = fed.program.record.lookup(fed, use, attr, entry)
    rows.rows_of = RowsOf(fed, use, attr, entry)
    return rows


def _layer(attr: ParamAttr) -> str:
    return unique_name.generate("embedding") if attr.name is None else "embedding"


def _fed_ids(ids: Variable) -> Optional[Variable]:
    """The fed variable of one id for each instance, or of any number of them."""
    one_each = len(ids.shape) == 1 or (len(ids.shape) == 2 and ids.shape[1] in (1, -1))
    return ids if ids.is_data and (one_each or ids.lod_level > 0) else None


def sequence_pool(input: Variable, pool_type: str, is_test: bool = False,
                  pad_value: float = 0.0) -> Variable:
    """The sum, mean, ... of the rows of each instance's ids: [batch, dim]. Of embeddings only."""
    pools = {"sum": "sum", "average": "mean", "sqrt": "sqrt", "max": "max"}
    pool = pools.get(pool_type.lower())
    made = getattr(input, "rows_of", None)
    if pool is None or made is None or pad_value != 0.0:
        raise _core.ConfigError(f"sequence_pool: pool_type={pool_type!r}, pad_value={pad_value} of "
                                f"'{input.name}', expected {', '.join(pools)}, 0 and an embedding "
                                "with is_sparse=True of a fed variable")
    use = made.lookup
    made.ids.lookups.remove(use)
    pooled = Lookup(use.table, use.dim, use.size, use.init, pool, use.padding)
    return input.program.record.lookup(made.ids, pooled, made.attr, made.entry)


def batch_norm(input: Variable, act: Optional[str] = None, is_test: bool = False,
               momentum: float = 0.9, epsilon: float = 1e-5, param_attr: Any = None,
               bias_attr: Any = None, data_layout: str = "NCHW", name: Optional[str] = None,
               moving_mean_name: Optional[str] = None, moving_variance_name: Optional[str] = None
               ) -> Variable:
    """Normalises over the batch; keeps running statistics for tests."""
    if data_layout != "NCHW":
        raise _core.ConfigError(f"batch_norm: data_layout={data_layout!r}, expected 'NCHW'")
    layer = name or unique_name.generate("batch_norm")
    channels = [input.shape[1]]
    from argosy.nn.initializer import Constant

    scale = create_parameter(channels, "float32", param_attr, name_hint=layer,
                             default_init=Constant(1.0))
    bias = create_parameter(channels, "float32", bias_attr, is_bias=True, name_hint=layer)
    record = input.program.record
    mean = record.state(moving_mean_name or f"{layer}.mean", channels, "float32", "zeros")
    variance = record.state(moving_variance_name or f"{layer}.variance", channels, "float32",
                              "ones")
    out, next_mean, next_variance = record.apply(
        "batch_norm", [input, scale, bias, mean, variance],
        {"epsilon": epsilon, "momentum": momentum, "is_test": is_test})[:3]
    record.update(mean, next_mean)
    record.update(variance, next_variance)
    return _activated(out, act)
