"""Optimizers and learning rates."""

from argosy.optimizer import lr
from argosy.optimizer.optimizer import (SGD, Adagrad, Adam, AdamW, Ftrl, Lamb, LarsMomentum,
                                        Momentum, Optimizer)

__all__ = ["Adagrad", "Adam", "AdamW", "Ftrl", "Lamb", "LarsMomentum", "Momentum", "Optimizer",
           "SGD", "lr"]
