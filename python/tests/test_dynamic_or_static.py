"""The same functions and layers on Tensors and in recorded programs."""

import numpy as np
import pytest

import argosy
from argosy import nn, optimizer, static
from argosy.nn import functional as F

X = np.linspace(-1.0, 1.2, 12, dtype="float32").reshape(3, 4)
Y = np.linspace(0.4, 2.0, 12, dtype="float32").reshape(3, 4)

CASES = {
    "arithmetic": lambda x, y: (x + y * 2.0 - 1.0) / y,
    "reversed": lambda x, y: 2.0 - x + 3.0 / y,
    "power": lambda x, y: y ** 2.5 + y ** x,
    "rows": lambda x, y: x[0] + y[1:, 2].sum() + x[:, None].sum([0, 1]),
    "reduce": lambda x, y: x.mean(1, keepdim=True) * y.max(1, keepdim=True),
    "choose": lambda x, y: argosy.where(x > 0.0, x, y),
    "compare": lambda x, y: argosy.cast((x < y) & ~(x == 0.5), "float32"),
    "whole": lambda x, y: argosy.cast(argosy.cast(y, "int64") % 2 + 1, "float32"),
    "join": lambda x, y: argosy.concat([x, y], 1).reshape([-1, 2]).transpose([1, 0]),
    "products": lambda x, y: x @ y.T + argosy.einsum("ij,kj->ik", x, y),
    "softmax": lambda x, y: F.log_softmax(x) * F.softmax(y, 0),
    "gelu": lambda x, y: F.gelu(x) + F.softplus(y) + F.elu(x),
    "likeness": lambda x, y: F.cosine_similarity(x, y) + argosy.ones_like(x).sum(1),
    "created": lambda x, y: x + argosy.full([4], 2.5) + argosy.arange(4, dtype="float32"),
    "triangle": lambda x, y: argosy.tril(x.T @ x) + argosy.norm(y.T @ x, axis=1),
    "loss": lambda x, y: F.cross_entropy(x, argosy.argmax(y, 1)) + F.mse_loss(x, y),
}


@pytest.fixture
def static_mode():
    argosy.enable_static()
    yield
    argosy.disable_static()


def recorded(function, **arrays):
    """What a program gives that records the function of fed arrays."""
    program, startup = static.Program(), static.Program()
    with static.program_guard(program, startup), argosy.unique_name.guard():
        fed = [static.data(name, [None, *array.shape[1:]], str(array.dtype))
               for name, array in arrays.items()]
        out = function(*fed)
    exe = static.Executor()
    exe.run(startup)
    return exe.run(program, feed=arrays, fetch_list=[out])[0]


@pytest.mark.parametrize("name", CASES)
def test_functions_agree(name, static_mode):
    found = recorded(CASES[name], x=X, y=Y)
    argosy.disable_static()
    expected = CASES[name](argosy.to_tensor(X), argosy.to_tensor(Y)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


class Model(nn.Layer):
    """A bit of everything."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 2))
        self.table = nn.Embedding(9, 2)

    def forward(self, x, ids):
        """Two numbers for each row."""
        return self.body(x) + self.table(ids).sum(1)


def test_layers_agree_from_the_same_seed(static_mode):
    ids = np.array([[1, 2], [8, 0], [3, 3]])
    argosy.seed(11)
    found = recorded(lambda x, y: Model()(x, y), x=X, y=ids)
    argosy.disable_static()
    with argosy.unique_name.guard():
        expected = Model()(argosy.to_tensor(X), argosy.to_tensor(ids)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
