"""Decay of weights, added to their gradients."""

__all__ = ["L1Decay", "L2Decay"]


class WeightDecayRegularizer:
    """Base of L1Decay and L2Decay."""

    _kind = ""

    def __init__(self, coeff: float = 0.0):
        self._coeff = float(coeff)

    def _text(self) -> str:
        return f"{self._kind}({self._coeff!r})" if self._coeff else ""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._coeff})"


class L1Decay(WeightDecayRegularizer):
    """Adds coeff * sign(w)."""

    _kind = "l1"


class L2Decay(WeightDecayRegularizer):
    """Adds coeff * w."""

    _kind = "l2"
