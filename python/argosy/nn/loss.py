"""Losses as layers."""

from argosy.nn import functional as F
from argosy.nn.layer import Layer


class CrossEntropyLoss(Layer):
    """The loss of logits for labels of classes."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", soft_label=False, axis=-1,
                 use_softmax=True, label_smoothing=0.0, name=None):
        super().__init__()
        self._settings = dict(weight=weight, ignore_index=ignore_index, reduction=reduction,
                              soft_label=soft_label, axis=axis, use_softmax=use_softmax,
                              label_smoothing=label_smoothing)

    def forward(self, input, label):
        """The loss."""
        return F.cross_entropy(input, label, **self._settings)


class BCELoss(Layer):
    """The loss of probabilities for labels 0 and 1."""

    def __init__(self, weight=None, reduction="mean", name=None):
        super().__init__()
        self._settings = dict(weight=weight, reduction=reduction)

    def forward(self, input, label):
        """The loss."""
        return F.binary_cross_entropy(input, label, **self._settings)


class BCEWithLogitsLoss(Layer):
    """The loss of logits for labels 0 and 1."""

    def __init__(self, weight=None, reduction="mean", pos_weight=None, name=None):
        super().__init__()
        self._settings = dict(weight=weight, reduction=reduction, pos_weight=pos_weight)

    def forward(self, logit, label):
        """The loss."""
        return F.binary_cross_entropy_with_logits(logit, label, **self._settings)


class MSELoss(Layer):
    """The mean of (input - label)^2."""

    def __init__(self, reduction="mean"):
        super().__init__()
        self._reduction = reduction

    def forward(self, input, label):
        """The loss."""
        return F.mse_loss(input, label, self._reduction)


class L1Loss(Layer):
    """The mean of |input - label|."""

    def __init__(self, reduction="mean", name=None):
        super().__init__()
        self._reduction = reduction

    def forward(self, input, label):
        """The loss."""
        return F.l1_loss(input, label, self._reduction)


class SmoothL1Loss(Layer):
    """Squares near 0 and lines beyond delta."""

    def __init__(self, reduction="mean", delta=1.0, name=None):
        super().__init__()
        self._settings = dict(reduction=reduction, delta=delta)

    def forward(self, input, label):
        """The loss."""
        return F.smooth_l1_loss(input, label, **self._settings)


class NLLLoss(Layer):
    """The loss of log-probabilities for labels of classes."""

    def __init__(self, weight=None, ignore_index=-100, reduction="mean", name=None):
        super().__init__()
        self._settings = dict(weight=weight, ignore_index=ignore_index, reduction=reduction)

    def forward(self, input, label):
        """The loss."""
        return F.nll_loss(input, label, **self._settings)


class KLDivLoss(Layer):
    """The divergence of log-probabilities from probabilities."""

    def __init__(self, reduction="mean"):
        super().__init__()
        self._reduction = reduction

    def forward(self, input, label):
        """The loss."""
        return F.kl_div(input, label, self._reduction)


class MarginRankingLoss(Layer):
    """max(0, -label * (input - other) + margin)."""

    def __init__(self, margin=0.0, reduction="mean", name=None):
        super().__init__()
        self._settings = dict(margin=margin, reduction=reduction)

    def forward(self, input, other, label):
        """The loss."""
        return F.margin_ranking_loss(input, other, label, **self._settings)
