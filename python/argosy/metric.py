"""Metrics over the batches of a pass, and the accuracy of one batch."""

from typing import Any, List, Optional, Sequence, Tuple, Union

import numpy as np

__all__ = ["Accuracy", "Auc", "Metric", "Precision", "Recall", "accuracy"]


def _array(values: Any) -> np.ndarray:
    return values.numpy() if hasattr(values, "numpy") else np.asarray(values)


class Metric:
    """Base: compute of a batch gives what update takes; accumulate says the result so far."""

    def reset(self) -> None:
        """Forgets all batches."""
        raise NotImplementedError(f"{type(self).__name__} has no reset, which a Metric needs")

    def update(self, *args: Any) -> Any:
        """Takes a batch in."""
        raise NotImplementedError(f"{type(self).__name__} has no update, which a Metric needs")

    def accumulate(self) -> Any:
        """The result of all batches since reset."""
        raise NotImplementedError(f"{type(self).__name__} has no accumulate, which a Metric needs")

    def name(self) -> Any:
        """What the result is called."""
        raise NotImplementedError(f"{type(self).__name__} has no name, which a Metric needs")

    def compute(self, *args: Any) -> Any:
        """What update takes, of predictions and labels: as they are, unless a subclass differs."""
        return args


class Accuracy(Metric):
    """The share of samples whose label is among the k best scores, for each k of topk."""

    def __init__(self, topk: Union[int, Sequence[int]] = (1,), name: Optional[str] = None):
        self.topk: Tuple[int, ...] = (topk,) if isinstance(topk, int) else tuple(topk)
        if not self.topk or min(self.topk) < 1:
            raise ValueError(f"topk is {topk!r}, expected positive numbers")
        self._name = name or "acc"
        self.reset()

    def compute(self, pred: Any, label: Any, *args: Any) -> np.ndarray:
        """f32[n, k] with a 1 where the j-th best score is the label's."""
        scores, labels = _array(pred), _array(label)
        best = np.argsort(-scores, axis=-1, kind="stable")[..., :max(self.topk)]
        if labels.ndim == scores.ndim and labels.shape[-1] == scores.shape[-1] > 1:
            labels = labels.argmax(axis=-1)[..., None]  # one-hot
        elif labels.ndim < scores.ndim:
            labels = labels[..., None]
        return (best == labels).astype(np.float32)

    def update(self, correct: Any, *args: Any) -> Any:
        """Takes compute's result in; gives the accuracy of this batch."""
        hits = _array(correct)
        samples = int(np.prod(hits.shape[:-1]))
        batch = []
        for i, k in enumerate(self.topk):
            right = float(hits[..., :k].sum())
            self.total[i] += right
            self.count[i] += samples
            batch.append(right / samples if samples else 0.0)
        return batch[0] if len(batch) == 1 else batch

    def reset(self) -> None:
        self.total: List[float] = [0.0] * len(self.topk)
        self.count: List[int] = [0] * len(self.topk)

    def accumulate(self) -> Any:
        shares = [total / count if count else 0.0 for total, count in zip(self.total, self.count)]
        return shares[0] if len(shares) == 1 else shares

    def name(self) -> List[str]:
        return [self._name] if len(self.topk) == 1 else [f"{self._name}_top{k}" for k in self.topk]


class _Counted(Metric):
    """Of binary predictions: a score above one half is a yes."""

    def __init__(self, name: str):
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Takes scores from 0 to 1 and labels 0 or 1 in."""
        said, true = _array(preds).ravel() > 0.5, _array(labels).ravel() > 0.5
        if said.shape != true.shape:
            raise ValueError(f"{said.size} predictions for {true.size} labels")
        self.tp += int((said & true).sum())
        self.fp += int((said & ~true).sum())
        self.fn += int((~said & true).sum())

    def reset(self) -> None:
        self.tp = self.fp = self.fn = 0

    def name(self) -> str:
        return self._name


class Precision(_Counted):
    """The share of true ones among those predicted as such."""

    def __init__(self, name: str = "precision"):
        super().__init__(name)

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 0.0


class Recall(_Counted):
    """The share of those predicted among the true ones."""

    def __init__(self, name: str = "recall"):
        super().__init__(name)

    def accumulate(self) -> float:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 0.0


class Auc(Metric):
    """The area under the ROC curve, of counts in num_thresholds + 1 buckets."""

    def __init__(self, curve: str = "ROC", num_thresholds: int = 4095, name: str = "auc"):
        if curve != "ROC":
            raise ValueError(f"curve is '{curve}', expected ROC")
        if num_thresholds < 1:
            raise ValueError(f"num_thresholds is {num_thresholds}, expected 1 or more")
        self._thresholds = num_thresholds
        self._name = name
        self.reset()

    def update(self, preds: Any, labels: Any) -> None:
        """Takes scores in, [n, 2] with that of the yes last, or [n, 1] or [n]; and labels."""
        scores, labels = _array(preds), _array(labels).ravel()
        scores = scores[:, -1] if scores.ndim == 2 else scores.ravel()
        if scores.shape != labels.shape:
            raise ValueError(f"{scores.size} predictions for {labels.size} labels")
        if scores.size and not (scores.min() >= 0 and scores.max() <= 1):
            raise ValueError(f"predictions are from {scores.min()} to {scores.max()}, expected "
                             "0 to 1")
        buckets = (scores * self._thresholds).astype(np.int64)
        size = self._thresholds + 1
        self._stat_pos += np.bincount(buckets[labels > 0], minlength=size)
        self._stat_neg += np.bincount(buckets[labels == 0], minlength=size)

    def reset(self) -> None:
        self._stat_pos = np.zeros(self._thresholds + 1, np.int64)
        self._stat_neg = np.zeros(self._thresholds + 1, np.int64)

    def accumulate(self) -> float:
        positives = np.cumsum(self._stat_pos[::-1]).astype(np.float64)
        negatives = self._stat_neg[::-1].astype(np.float64)
        area = (negatives * (positives - self._stat_pos[::-1] / 2)).sum()
        whole = positives[-1] * negatives.sum()
        return float(area / whole) if whole > 0 else 0.0

    def name(self) -> str:
        return self._name


def accuracy(input: Any, label: Any, k: int = 1, correct: Any = None, total: Any = None,
             name: Optional[str] = None) -> Any:
    """The share of rows whose label is among the k best scores: a tensor, or a variable."""
    import argosy
    from argosy import static
    if isinstance(input, static.Variable):
        return static.accuracy(input, label, k, correct, total)
    if correct is not None or total is not None:
        raise ValueError("correct and total cannot be handed out in dynamic mode, expected None")
    scorer = Accuracy(topk=(k,))
    return argosy.to_tensor(np.asarray(scorer.update(scorer.compute(input, label)), np.float32))
