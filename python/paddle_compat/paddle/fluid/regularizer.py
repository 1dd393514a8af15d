"""Decay of weights by its 1.x names."""

from argosy.regularizer import L1Decay, L2Decay
from paddle import _names

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]

L1DecayRegularizer, L2DecayRegularizer = L1Decay, L2Decay

__getattr__, __dir__ = _names.lazy(__name__)
