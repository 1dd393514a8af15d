"""Metrics over many batches that a static program measures while it runs."""

from collections import deque
from typing import Any, List, Tuple

import numpy as np

from argosy import _core, unique_name
from argosy.dtypes import dtype_name
from argosy.static._program import Program
from argosy.static._record import Variable


class MeterVariable:
    """A metric that can be fetched like a variable of one number."""

    shape = [1]
    stop_gradient = True
    persistable = True

    def __init__(self, program: Program, name: str, auc: "StaticAuc", what: str,
                 dtype: str = "float64"):
        self.program, self.name, self.meter, self.what = program, name, auc, what
        self.dtype = dtype

    def value(self) -> np.ndarray:
        """The metric so far."""
        return self.meter.value(self.what).astype(self.dtype)

    def astype(self, dtype: Any) -> "MeterVariable":
        """The same metric as another type."""
        return MeterVariable(self.program, self.name, self.meter, self.what, dtype_name(dtype))

    def __repr__(self) -> str:
        return f"metric {self.name} : shape(1,) dtype({self.dtype})"


class StaticAuc:
    """The area under the ROC curve over all batches, and over the last ones."""

    def __init__(self, name: str, prediction: Variable, label: Variable, buckets: int, steps: int):
        self.name = name
        self.prediction, self.label = prediction, label
        self.buckets = buckets
        self._text = f"auc(buckets={buckets})"
        self._all = _core.Meter(self._text)
        self._last: deque = deque(maxlen=steps or None)
        self.states = [unique_name.generate("_generated_var") for _ in range(4)]

    def spec(self) -> Tuple[str, str, int, int]:
        """What the engine needs to measure it."""
        return self.name, self._text, self.prediction.number, self.label.number

    def add(self, prediction: np.ndarray, label: np.ndarray) -> None:
        """Counts a batch."""
        positive = np.ascontiguousarray(prediction.reshape(len(prediction), -1)[:, -1], np.float32)
        clicked = np.ascontiguousarray(label.reshape(-1), np.float32)
        self._all.add(positive, clicked)
        self._last.append((positive, clicked))

    def value(self, what: str) -> np.ndarray:
        """The metric so far; 0 as long as there was one class only, as Paddle has it."""
        if what == "all":
            value = self._all.value()
        else:
            meter = _core.Meter(self._text)
            for positive, clicked in self._last:
                meter.add(positive, clicked)
            value = meter.value()
        return np.array([0.0 if np.isnan(value) else value])

    def reset(self) -> None:
        """Forgets all batches."""
        self._all.reset()
        self._last.clear()


def auc(input: Variable, label: Variable, curve: str = "ROC", num_thresholds: int = 2**12 - 1,
        topk: int = 1, slide_steps: int = 1, ins_tag_weight: Any = None
        ) -> Tuple[MeterVariable, MeterVariable, List[MeterVariable]]:
    """(over all batches, over the last slide_steps batches, states); the last column of the input
    is the probability of a click."""
    if curve != "ROC" or topk != 1 or ins_tag_weight is not None:
        raise _core.ConfigError(f"auc: curve={curve!r}, topk={topk}, ins_tag_weight: expected "
                                "'ROC', 1 and None")
    program = input.program
    prediction = input
    if len(input.shape) != 2:
        raise _core.ConfigError(f"auc: '{input.name}' is {input.shape}, expected [batch, classes]")
    if input.shape[1] != 1:
        columns = input.shape[1]
        prediction = program.record.apply("slice", [input],
                                          {"axes": [1], "starts": [columns - 1], "ends": [columns]})[0]
    name = unique_name.generate("auc")
    meter = StaticAuc(name, prediction, label, num_thresholds + 1, slide_steps)
    program.record.meters.append(meter)
    overall = MeterVariable(program, f"{name}.tmp_0", meter, "all")
    recent = MeterVariable(program, f"{name}.tmp_1", meter, "recent")
    states = [MeterVariable(program, state, meter, "recent" if i < 2 else "all")
              for i, state in enumerate(meter.states)]
    return overall, recent, states


def accuracy(input: Variable, label: Variable, k: int = 1, correct: Any = None, total: Any = None
             ) -> Variable:
    """The share of rows whose label is among the k largest of the input."""
    from argosy import _math, _shaping

    if correct is not None or total is not None:
        raise _core.ConfigError("accuracy: correct and total are not supported, expected None")
    if k == 1:
        best = _math.argmax(input, axis=-1, keepdim=True)
    else:
        best = _shaping.topk(input, k)[1]
    if len(label.shape) == 1:
        label = label.reshape([-1, 1])
    right = _math.cast(_math.equal(best, label), "float32")
    return _math.mean(_math.sum(right, axis=-1))
