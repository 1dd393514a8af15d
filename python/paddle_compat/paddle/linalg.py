"""Linear algebra by Paddle's names."""

from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__, names={
    "matmul": "argosy._math:matmul", "norm": "argosy._math:norm"})
