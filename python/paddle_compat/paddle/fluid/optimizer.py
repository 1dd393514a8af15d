"""Optimizers by their 1.x names and arguments."""

from typing import Any, Optional

from argosy import optimizer as _optimizer
from paddle import _names

__all__ = ["Adagrad", "AdagradOptimizer", "Adam", "AdamOptimizer", "Ftrl", "FtrlOptimizer", "Lamb",
           "LambOptimizer", "Momentum", "MomentumOptimizer", "SGD", "SGDOptimizer"]


class SGD(_optimizer.SGD):
    """p - rate g."""

    def __init__(self, learning_rate: Any, parameter_list: Any = None, regularization: Any = None,
                 grad_clip: Any = None, name: Optional[str] = None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)


class Momentum(_optimizer.Momentum):
    """With a velocity."""

    def __init__(self, learning_rate: Any, momentum: float, parameter_list: Any = None,
                 use_nesterov: bool = False, regularization: Any = None, grad_clip: Any = None,
                 name: Optional[str] = None):
        super().__init__(learning_rate, momentum, parameter_list, use_nesterov, regularization,
                         grad_clip, name=name)


class Adam(_optimizer.Adam):
    """With moments of the gradient."""

    def __init__(self, learning_rate: Any = 0.001, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-8, parameter_list: Any = None, regularization: Any = None,
                 grad_clip: Any = None, name: Optional[str] = None, lazy_mode: bool = False):
        super().__init__(learning_rate, beta1, beta2, epsilon, parameter_list, regularization,
                         grad_clip, lazy_mode, name=name)


class Adagrad(_optimizer.Adagrad):
    """With the sum of squares of the gradient."""

    def __init__(self, learning_rate: Any, epsilon: float = 1e-6, parameter_list: Any = None,
                 regularization: Any = None, grad_clip: Any = None, name: Optional[str] = None,
                 initial_accumulator_value: float = 0.0):
        super().__init__(learning_rate, epsilon, parameter_list, regularization, grad_clip, name,
                         initial_accumulator_value)


class Ftrl(_optimizer.Ftrl):
    """Follow the regularized leader: weights that stay 0 until they matter."""

    def __init__(self, learning_rate: Any, l1: float = 0.0, l2: float = 0.0, lr_power: float = -0.5,
                 parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None,
                 name: Optional[str] = None):
        super().__init__(learning_rate, l1, l2, lr_power, parameter_list, regularization, grad_clip,
                         name)


SGDOptimizer, MomentumOptimizer, AdamOptimizer, AdagradOptimizer = SGD, Momentum, Adam, Adagrad
FtrlOptimizer = Ftrl

__getattr__, __dir__ = _names.lazy(__name__, names={
    "Lamb": "argosy.optimizer:Lamb", "LambOptimizer": "argosy.optimizer:Lamb"})
