"""Learning rates that change with the steps done."""

import math
from typing import Callable, List

from argosy import _core

__all__ = [
    "CosineAnnealingDecay", "ExponentialDecay", "InverseTimeDecay", "LRScheduler",
    "LambdaDecay", "LinearWarmup", "MultiStepDecay", "MultiplicativeDecay", "NaturalExpDecay",
    "NoamDecay", "PiecewiseDecay", "PolynomialDecay", "ReduceOnPlateau", "StepDecay",
]


class LRScheduler:
    """A learning rate for each number of steps; step() counts one."""

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False):
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (int, float)):
            raise TypeError(f"learning_rate is a number, not {type(learning_rate).__name__}")
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    def __call__(self) -> float:
        return self.last_lr

    def get_lr(self) -> float:
        """The rate after last_epoch steps; each scheduler has its own."""
        raise NotImplementedError

    def step(self, epoch=None) -> None:
        """Goes one step on, or to a given one."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.last_lr = self.get_lr()
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to "
                  f"{self.last_lr}.")

    def state_dict(self) -> dict:
        """Where it stands."""
        return {"last_epoch": self.last_epoch, "last_lr": self.last_lr}

    def set_state_dict(self, state: dict) -> None:
        """Goes back to where a state_dict was taken."""
        for key in self.state_dict():
            if key not in state:
                raise _core.ConfigError(f"the state of {type(self).__name__} lacks '{key}'")
            setattr(self, key, state[key])

    set_dict = set_state_dict

    def _schedule(self) -> str:
        """The same as a text that servers and recorded programs can compute themselves."""
        raise _core.ConfigError(f"{type(self).__name__} has no form that a recorded program can "
                                "compute; PiecewiseDecay, ExponentialDecay, StepDecay, "
                                "PolynomialDecay, CosineAnnealingDecay and LinearWarmup have")


class NoamDecay(LRScheduler):
    """learning_rate * d_model^-0.5 * min(t^-0.5, t * warmup_steps^-1.5)."""

    def __init__(self, d_model, warmup_steps, learning_rate=1.0, last_epoch=-1, verbose=False):
        self.d_model, self.warmup_steps = d_model, warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        rising = self.warmup_steps ** -1.5 * self.last_epoch
        falling = 1.0 if self.last_epoch == 0 else self.last_epoch ** -0.5
        return self.base_lr * self.d_model ** -0.5 * min(falling, rising)


class PiecewiseDecay(LRScheduler):
    """values[i] until boundaries[i] steps were done."""

    def __init__(self, boundaries: List[int], values: List[float], last_epoch=-1, verbose=False):
        if len(values) != len(boundaries) + 1:
            raise _core.ConfigError(f"PiecewiseDecay: {len(boundaries)} boundaries need "
                                    f"{len(boundaries) + 1} values, got {len(values)}")
        self.boundaries, self.values = list(boundaries), list(values)
        super().__init__(values[0], last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        passed = sum(self.last_epoch >= boundary for boundary in self.boundaries)
        return float(self.values[passed])

    def _schedule(self) -> str:
        parts = [repr(float(self.values[0]))]
        for boundary, value in zip(self.boundaries, self.values[1:]):
            parts += [str(int(boundary)), repr(float(value))]
        return f"piecewise({', '.join(parts)})"


class NaturalExpDecay(LRScheduler):
    """learning_rate * exp(-gamma * t)."""

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        return self.base_lr * math.exp(-self.gamma * self.last_epoch)

    def _schedule(self) -> str:
        return f"exponential({self.base_lr!r}, steps=1, factor={math.exp(-self.gamma)!r})"


class InverseTimeDecay(LRScheduler):
    """learning_rate / (1 + gamma * t)."""

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        return self.base_lr / (1 + self.gamma * self.last_epoch)


class PolynomialDecay(LRScheduler):
    """From learning_rate to end_lr in decay_steps, by a power."""

    def __init__(self, learning_rate, decay_steps, end_lr=0.0001, power=1.0, cycle=False,
                 last_epoch=-1, verbose=False):
        self.decay_steps, self.end_lr, self.power = int(decay_steps), end_lr, power
        self.cycle = cycle
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        period = self.decay_steps
        if self.cycle:
            period *= max(1, math.ceil(self.last_epoch / self.decay_steps))
        done = min(self.last_epoch, period) / period
        return (self.base_lr - self.end_lr) * (1 - done) ** self.power + self.end_lr

    def _schedule(self) -> str:
        return (f"polynomial({self.base_lr!r}, steps={self.decay_steps}, end={self.end_lr!r}, "
                f"power={float(self.power)!r}, cycle={int(self.cycle)})")


class LinearWarmup(LRScheduler):
    """Climbs from start_lr to end_lr in warmup_steps, then follows a rate or a scheduler."""

    def __init__(self, learning_rate, warmup_steps, start_lr, end_lr, last_epoch=-1,
                 verbose=False):
        self.learning_rate, self.warmup_steps = learning_rate, int(warmup_steps)
        self.start_lr, self.end_lr = float(start_lr), float(end_lr)
        super().__init__(start_lr, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        if self.last_epoch < self.warmup_steps:
            part = self.last_epoch / self.warmup_steps
            return self.start_lr + (self.end_lr - self.start_lr) * part
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return float(self.learning_rate)

    def state_dict(self) -> dict:
        """Where it stands, and where the scheduler behind it does."""
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state: dict) -> None:
        """Goes back to where a state_dict was taken."""
        self.last_epoch, self.last_lr = state["last_epoch"], state["last_lr"]
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.set_state_dict(state["LinearWarmup_LR"])

    def _schedule(self) -> str:
        if isinstance(self.learning_rate, LRScheduler):
            rest, first = self.learning_rate._schedule(), self.learning_rate.base_lr
        else:
            rest, first = repr(float(self.learning_rate)), float(self.learning_rate)
        if first != self.end_lr:
            raise _core.ConfigError(f"LinearWarmup: a recorded program climbs to the rate that "
                                    f"follows ({first}), but end_lr is {self.end_lr}")
        return f"linear_warmup(steps={self.warmup_steps}, start={self.start_lr!r}) then {rest}"


class ExponentialDecay(LRScheduler):
    """learning_rate * gamma^t."""

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        return self.base_lr * self.gamma ** self.last_epoch

    def _schedule(self) -> str:
        return f"exponential({self.base_lr!r}, steps=1, factor={float(self.gamma)!r})"


class MultiStepDecay(LRScheduler):
    """learning_rate times gamma for each milestone passed."""

    def __init__(self, learning_rate, milestones, gamma=0.1, last_epoch=-1, verbose=False):
        self.milestones, self.gamma = list(milestones), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        passed = sum(self.last_epoch >= milestone for milestone in self.milestones)
        return self.base_lr * self.gamma ** passed

    def _schedule(self) -> str:
        rates = [self.base_lr * self.gamma ** i for i in range(len(self.milestones) + 1)]
        return PiecewiseDecay(self.milestones, rates)._schedule()


class StepDecay(LRScheduler):
    """learning_rate times gamma every step_size steps."""

    def __init__(self, learning_rate, step_size, gamma=0.1, last_epoch=-1, verbose=False):
        self.step_size, self.gamma = int(step_size), gamma
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        return self.base_lr * self.gamma ** (self.last_epoch // self.step_size)

    def _schedule(self) -> str:
        return f"step({self.base_lr!r}, steps={self.step_size}, factor={float(self.gamma)!r})"


class LambdaDecay(LRScheduler):
    """learning_rate times a function of the steps."""

    def __init__(self, learning_rate, lr_lambda: Callable[[int], float], last_epoch=-1,
                 verbose=False):
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(LRScheduler):
    """The rate before times a function of the steps."""

    def __init__(self, learning_rate, lr_lambda: Callable[[int], float], last_epoch=-1,
                 verbose=False):
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        rate = self.base_lr
        for epoch in range(1, self.last_epoch + 1):
            rate *= self.lr_lambda(epoch)
        return rate


class CosineAnnealingDecay(LRScheduler):
    """Half a cosine from learning_rate down to eta_min in T_max steps, and back up after it."""

    def __init__(self, learning_rate, T_max, eta_min=0.0, last_epoch=-1, verbose=False):
        self.T_max, self.eta_min = int(T_max), float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self) -> float:
        """The rate now."""
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return self.eta_min + (self.base_lr - self.eta_min) * part

    def _schedule(self) -> str:
        """As it is until T_max; after it a recorded program stays at eta_min."""
        return f"cosine({self.base_lr!r}, steps={self.T_max}, end={self.eta_min!r})"


class ReduceOnPlateau(LRScheduler):
    """Times factor when a metric has not improved for some steps."""

    def __init__(self, learning_rate, mode="min", factor=0.1, patience=10, threshold=1e-4,
                 threshold_mode="rel", cooldown=0, min_lr=0, epsilon=1e-8, verbose=False):
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise _core.ConfigError(f"ReduceOnPlateau: mode '{mode}' and threshold_mode "
                                    f"'{threshold_mode}', expected min or max, rel or abs")
        self.mode, self.factor, self.patience = mode, factor, patience
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.cooldown, self.min_lr, self.epsilon = cooldown, min_lr, epsilon
        self.best, self.num_bad_epochs, self.cooldown_counter = None, 0, 0
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch, self.verbose = 0, verbose

    def get_lr(self) -> float:
        """The rate now."""
        return self.last_lr

    def _better(self, metric: float) -> bool:
        if self.best is None:
            return True
        sign = 1 if self.mode == "max" else -1
        margin = self.threshold * abs(self.best) if self.threshold_mode == "rel" else self.threshold
        return sign * (metric - self.best) > margin

    def step(self, metrics, epoch=None) -> None:
        """Looks at the metric of one more step."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        metric = float(metrics)
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self._better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            lower = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - lower > self.epsilon:
                self.last_lr = lower

    def state_dict(self) -> dict:
        """Where it stands."""
        return {**super().state_dict(), "best": self.best, "num_bad_epochs": self.num_bad_epochs,
                "cooldown_counter": self.cooldown_counter}
