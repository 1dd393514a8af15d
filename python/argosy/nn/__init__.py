"""Layers, losses and what gradients are clipped by."""

from argosy._parameters import ParamAttr, Parameter
from argosy.nn import functional, initializer
from argosy.nn.activation import (ELU, GELU, GLU, SELU, Hardsigmoid, Hardswish, Hardtanh, LeakyReLU,
                                  LogSigmoid, LogSoftmax, Mish, ReLU, ReLU6, Sigmoid, Silu, Softmax,
                                  Softplus, Softsign, Swish, Tanh)
from argosy.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from argosy.nn.common import (BatchNorm, BatchNorm1D, BatchNorm2D, Bilinear, CosineSimilarity,
                              Dropout, Embedding, Flatten, Identity, LayerNorm, Linear, PReLU,
                              SyncBatchNorm)
from argosy.nn.containers import LayerDict, LayerList, ParameterList, Sequential
from argosy.nn.conv import Conv1D, Conv2D
from argosy.nn.layer import Layer
from argosy.nn.loss import (BCELoss, BCEWithLogitsLoss, CrossEntropyLoss, KLDivLoss, L1Loss,
                            MarginRankingLoss, MSELoss, NLLLoss, SmoothL1Loss)
from argosy.nn.rnn import GRU, GRUCell

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "BatchNorm", "BatchNorm1D", "BatchNorm2D", "Bilinear",
    "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "Conv1D",
    "Conv2D", "CosineSimilarity", "GRU", "GRUCell",
    "CrossEntropyLoss", "Dropout", "ELU", "Embedding", "Flatten", "GELU", "GLU", "Hardsigmoid",
    "Hardswish", "Hardtanh", "Identity", "KLDivLoss", "L1Loss", "Layer", "LayerDict", "LayerList",
    "LayerNorm", "LeakyReLU", "Linear", "LogSigmoid", "LogSoftmax", "MSELoss", "MarginRankingLoss",
    "Mish", "NLLLoss", "PReLU", "ParamAttr", "Parameter", "ParameterList", "ReLU", "ReLU6", "SELU",
    "Sequential", "Sigmoid", "Silu", "SmoothL1Loss", "Softmax", "Softplus", "Softsign", "Swish",
    "SyncBatchNorm", "Tanh", "functional", "initializer",
]
