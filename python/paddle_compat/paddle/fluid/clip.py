"""Clipping of gradients by its 1.x names."""

from argosy.nn import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from paddle import _names

__all__ = ["GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue"]


def GradientClipByGlobalNorm(clip_norm: float, group_name: str = "default_group"):
    """All gradients together."""
    return ClipGradByGlobalNorm(clip_norm)


def GradientClipByNorm(clip_norm: float):
    """Each parameter's gradient."""
    return ClipGradByNorm(clip_norm)


def GradientClipByValue(max: float, min=None):
    """Each element."""
    return ClipGradByValue(max, min)


__getattr__, __dir__ = _names.lazy(__name__)
