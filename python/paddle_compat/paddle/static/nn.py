"""Layers of static programs."""

from argosy.static.nn import batch_norm, embedding, fc, sequence_pool, sparse_embedding
from paddle import _names

__all__ = ["batch_norm", "embedding", "fc", "sequence_pool", "sparse_embedding"]

__getattr__, __dir__ = _names.lazy(__name__)
