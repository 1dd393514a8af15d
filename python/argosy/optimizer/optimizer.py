"""Optimizers: how parameters follow their gradients."""

import re
from typing import Any, Dict, List, Optional

import numpy as np

from argosy import _core
from argosy._apply import Tensor, is_variable
from argosy._check_nan import check_nan
from argosy.optimizer.lr import LRScheduler
from argosy.regularizer import L2Decay


def _decay_text(decay) -> str:
    if decay is None:
        return ""
    return decay._text() if hasattr(decay, "_text") else L2Decay(float(decay))._text()


def _numbers(**settings) -> str:
    return ", ".join(f"{name}={float(value)!r}" for name, value in settings.items())


class Optimizer:
    """Base of all: a rule, a learning rate, decay of weights and clipping of gradients."""

    _states: tuple = ()  # what is kept for each weight, as state_dict names it

    def __init__(self, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None,
                 name: Optional[str] = None):
        if not isinstance(learning_rate, (int, float, LRScheduler)):
            raise TypeError(f"learning_rate is a number or an LRScheduler, not "
                            f"{type(learning_rate).__name__}")
        if isinstance(parameters, Tensor):
            raise TypeError("parameters is a list of parameters, not one Tensor")
        self._learning_rate = learning_rate
        self._weight_decay = weight_decay
        self._grad_clip = grad_clip
        self._groups = self._grouped(parameters)
        self._stepper = None
        self._waiting: Dict[str, Any] = {}

    @staticmethod
    def _grouped(parameters) -> Optional[List[dict]]:
        if parameters is None:
            return None
        parameters = list(parameters)
        if parameters and isinstance(parameters[0], dict):
            return [{**group, "params": list(group["params"])} for group in parameters]
        return [{"params": parameters}]

    @property
    def _parameter_list(self) -> Optional[list]:
        if self._groups is None:
            return None
        return [parameter for group in self._groups for parameter in group["params"]]

    def _rule(self) -> str:
        """The rule as the engine reads it."""
        raise NotImplementedError

    def _rows_rule(self, rule: str) -> str:
        """The rule for the rows that a step has looked up, of a parameter that has this one."""
        return rule

    def _rule_of(self, parameter, group: dict) -> str:
        return self._rule()

    def _decay_of(self, parameter, group: dict) -> str:
        if getattr(parameter, "regularizer", None) is not None:
            return parameter.regularizer._text()
        return _decay_text(group.get("weight_decay", self._weight_decay))

    def _schedule(self) -> str:
        """The learning rate as the engine reads it."""
        if isinstance(self._learning_rate, LRScheduler):
            return self._learning_rate._schedule()
        return repr(float(self._learning_rate))

    def settings(self) -> dict:
        """What the engine trains with, as texts."""
        return {"rule": self._rule(), "learning_rate": self._schedule(),
                "regularizer": self._regularizer(), "clip": self._clip()}

    def rows_rule(self) -> str:
        """The rule for rows of tables."""
        return self._rows_rule(self._rule())

    def _regularizer(self) -> str:
        """The decay of weights as the engine reads it."""
        return _decay_text(self._weight_decay)

    def _clip(self) -> str:
        """The clipping of gradients as the engine reads it."""
        return "" if self._grad_clip is None else self._grad_clip._text()

    def _ready(self) -> "_core.Stepper":
        if self._stepper is not None:
            return self._stepper
        if self._groups is None:
            raise _core.ConfigError(f"{type(self).__name__}: parameters= is needed to train "
                                    "Tensors, such as layer.parameters()")
        stepper = _core.Stepper(self._clip(), check_nan())
        for group in self._groups:
            for parameter in group["params"]:
                rate = getattr(parameter, "optimize_attr", {}).get("learning_rate", 1.0)
                rule = self._rule_of(parameter, group)
                stepper.add(parameter, rule, self._decay_of(parameter, group),
                            float(rate) * float(group.get("learning_rate", 1.0)),
                            bool(getattr(parameter, "need_clip", True)),
                            self._rows_rule(rule), getattr(parameter, "name", None) or "")
        self._stepper = stepper
        if self._waiting:
            state, self._waiting = self._waiting, {}
            self._restore(state)
        return stepper

    def step(self) -> None:
        """Updates every parameter that has a gradient."""
        self._ready().step(self.get_lr())

    def clear_grad(self, set_to_zero: bool = False) -> None:
        """Forgets the gradients."""
        for parameter in self._parameter_list or []:
            parameter.clear_grad(set_to_zero)

    clear_gradients = clear_grad

    def backward(self, loss, startup_program=None, parameters=None, no_grad_set=None,
                 callbacks=None):
        """The gradients of the loss, as (parameter, gradient)."""
        loss.backward()
        return [(p, p.grad) for p in self._parameter_list or [] if p.grad is not None]

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None):
        """Lets parameters follow the loss: now for a Tensor, in each run for a Variable."""
        if is_variable(loss):
            if parameters is not None or no_grad_set:
                return loss.program.record.minimize(self, loss, parameters=parameters,
                                              no_grad_set=no_grad_set)
            return loss.program.record.minimize(self, loss)
        if parameters is not None or no_grad_set:
            raise _core.ConfigError("minimize of a Tensor takes its parameters from the optimizer")
        if all(p.grad is None for p in self._parameter_list or []):
            loss.backward()
        self.step()
        return None, [(p, p.grad) for p in self._parameter_list if p.grad is not None]

    def get_lr(self) -> float:
        """The learning rate of the next step."""
        rate = self._learning_rate
        return float(rate()) if isinstance(rate, LRScheduler) else float(rate)

    def set_lr(self, value: float) -> None:
        """Changes a learning rate that is a number."""
        if isinstance(self._learning_rate, LRScheduler):
            raise _core.ConfigError("set_lr: the learning rate is a scheduler's; step() moves it")
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """Takes the learning rate from a scheduler."""
        self._learning_rate = scheduler

    def state_dict(self) -> Dict[str, Any]:
        """What the optimizer remembers, by the names of parameters."""
        state: Dict[str, Any] = dict(self._waiting)
        if self._stepper is not None:
            for i, parameter in enumerate(self._parameter_list):
                steps, values = self._stepper.state(i)
                for kind, part in zip(self._states, np.split(values, len(self._states) or 1)):
                    state[f"{parameter.name}_{kind}_0"] = Tensor(part.reshape(parameter.shape))
                state[f"{parameter.name}_steps_0"] = int(steps)
        if isinstance(self._learning_rate, LRScheduler):
            state["LR_Scheduler"] = self._learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: Dict[str, Any]) -> None:
        """Takes back what state_dict gave."""
        state = dict(state_dict)
        scheduler = state.pop("LR_Scheduler", None)
        if scheduler is not None and isinstance(self._learning_rate, LRScheduler):
            self._learning_rate.set_state_dict(scheduler)
        if self._groups is None:
            self._waiting = state
        else:
            self._ready()
            self._restore(state)

    set_dict = set_state_dict

    def _restore(self, state: Dict[str, Any]) -> None:
        for i, parameter in enumerate(self._parameter_list):
            steps = state.get(f"{parameter.name}_steps_0")
            if steps is None:
                continue
            parts = []
            for kind in self._states:
                key = f"{parameter.name}_{kind}_0"
                if key not in state:
                    raise _core.ConfigError(f"the optimizer's state lacks '{key}'")
                parts.append(np.asarray(state[key], dtype="float32").reshape(-1))
            values = np.concatenate(parts) if parts else np.zeros(0, dtype="float32")
            self._stepper.set_state(i, int(steps), values)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._rule()}, learning_rate={self.get_lr()})"


class SGD(Optimizer):
    """w -= lr g."""

    def _rule(self) -> str:
        return "sgd"


class Momentum(Optimizer):
    """v = momentum v + g; w -= lr v."""

    _states = ("velocity",)

    def __init__(self, learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False,
                 weight_decay=None, grad_clip=None, multi_precision=False, rescale_grad=1.0,
                 use_multi_tensor=False, name=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        _refused("Momentum", multi_precision=(multi_precision, False),
                 rescale_grad=(rescale_grad, 1.0))
        self._momentum, self._nesterov = momentum, use_nesterov

    def _rule(self) -> str:
        return f"momentum({float(self._momentum)!r}, nesterov={int(self._nesterov)})"


def _refused(what: str, **arguments) -> None:
    """Arguments that have no effect here must ask for what happens anyway."""
    for name, (value, default) in arguments.items():
        if value != default:
            raise _core.ConfigError(f"{what}: {name}={value!r} is not supported, only {default!r}")


class Adam(Optimizer):
    """Moments of gradients and of their squares. Rows of sparse gradients are updated alone."""

    _states = ("moment1", "moment2")

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
                 weight_decay=None, grad_clip=None, lazy_mode=False, multi_precision=False,
                 use_multi_tensor=False, name=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        _refused(type(self).__name__, multi_precision=(multi_precision, False))
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon

    def _rule(self) -> str:
        return f"adam({_numbers(beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon)})"

    def _rows_rule(self, rule: str) -> str:
        return f"{rule[:-1]}, lead=1)" if rule.startswith("adam(") else rule


class AdamW(Adam):
    """Adam whose weights decay by themselves."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
                 weight_decay=0.01, lr_ratio=None, apply_decay_param_fun=None, grad_clip=None,
                 lazy_mode=False, multi_precision=False, name=None):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameters, None, grad_clip,
                         lazy_mode, multi_precision, name=name)
        _refused("AdamW", lr_ratio=(lr_ratio, None))
        self._coefficient = float(weight_decay)
        self._decays = apply_decay_param_fun

    def _rule(self, coefficient: Optional[float] = None) -> str:
        return "adamw(" + _numbers(
            beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon,
            weight_decay=self._coefficient if coefficient is None else coefficient) + ")"

    def _rule_of(self, parameter, group: dict) -> str:
        coefficient = float(group.get("weight_decay", self._coefficient))
        if self._decays is not None and not self._decays(parameter.name):
            coefficient = 0.0
        return self._rule(coefficient)

    def _decay_of(self, parameter, group: dict) -> str:
        regularizer = getattr(parameter, "regularizer", None)
        return "" if regularizer is None else regularizer._text()


class Adagrad(Optimizer):
    """Rates that fall with the squares of gradients so far."""

    _states = ("moment",)

    def __init__(self, learning_rate, epsilon=1e-6, parameters=None, weight_decay=None,
                 grad_clip=None, name=None, initial_accumulator_value=0.0):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._epsilon, self._first = epsilon, initial_accumulator_value

    def _rule(self) -> str:
        return f"adagrad({_numbers(epsilon=self._epsilon, initial_accumulator=self._first)})"


class Lamb(Optimizer):
    """Adam with steps in proportion to each parameter's norm."""

    _states = ("moment1", "moment2")

    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999,
                 epsilon=1e-6, parameters=None, grad_clip=None, exclude_from_weight_decay_fn=None,
                 multi_precision=False, name=None):
        super().__init__(learning_rate, parameters, None, grad_clip, name)
        _refused("Lamb", multi_precision=(multi_precision, False))
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._coefficient, self._excluded = float(lamb_weight_decay), exclude_from_weight_decay_fn

    def _rule(self, coefficient: Optional[float] = None) -> str:
        return "lamb(" + _numbers(
            beta1=self._beta1, beta2=self._beta2, epsilon=self._epsilon,
            weight_decay=self._coefficient if coefficient is None else coefficient) + ")"

    def _rule_of(self, parameter, group: dict) -> str:
        excluded = self._excluded is not None and self._excluded(parameter)
        return self._rule(0.0 if excluded else None)


class LarsMomentum(Optimizer):
    """Momentum with steps in proportion to each parameter's norm."""

    _states = ("velocity",)

    def __init__(self, learning_rate, momentum=0.9, lars_coeff=0.001, lars_weight_decay=0.0005,
                 parameters=None, grad_clip=None, name=None, exclude_from_weight_decay=None,
                 epsilon=0, multi_precision=False, rescale_grad=1.0):
        super().__init__(learning_rate, parameters, None, grad_clip, name)
        _refused("LarsMomentum", multi_precision=(multi_precision, False),
                 rescale_grad=(rescale_grad, 1.0))
        self._momentum, self._coeff, self._epsilon = momentum, lars_coeff, epsilon
        self._coefficient, self._excluded = lars_weight_decay, exclude_from_weight_decay or []

    def _rule(self, coefficient: Optional[float] = None) -> str:
        return "lars(" + _numbers(
            mu=self._momentum, coeff=self._coeff, epsilon=self._epsilon,
            weight_decay=self._coefficient if coefficient is None else coefficient) + ")"

    def _rule_of(self, parameter, group: dict) -> str:
        excluded = any(re.search(part, parameter.name) for part in self._excluded)
        return self._rule(0.0 if excluded else None)


class Ftrl(Optimizer):
    """Follow the regularized leader: weights that stay 0 until they matter."""

    _states = ("squared", "linear")

    def __init__(self, learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, parameters=None,
                 weight_decay=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
        self._l1, self._l2, self._power = l1, l2, lr_power

    def _rule(self) -> str:
        return f"ftrl({_numbers(l1=self._l1, l2=self._l2, lr_power=self._power)})"
