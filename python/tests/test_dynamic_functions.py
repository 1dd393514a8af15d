"""Functions on Tensors against NumPy, and their gradients against finite differences."""

import numpy as np
import pytest

import argosy
from argosy import nn
from argosy.nn import functional as F

RANDOM = np.random.default_rng(3)


def numbers(*shape, low=-2.0, high=2.0):
    """Distinct numbers away from 0 and from each other, so that nothing has a kink nearby."""
    count = int(np.prod(shape))
    values = np.linspace(low, high, count) + (high - low) / (4 * count)
    return RANDOM.permutation(values).reshape(shape)


def check_gradients(function, arrays):
    """Gradients in float64 against finite differences."""
    weights = None

    def loss(tensors):
        nonlocal weights
        out = function(*tensors)
        if weights is None:
            weights = RANDOM.standard_normal(out.shape)
        return (out * argosy.to_tensor(weights)).sum()

    tensors = [argosy.to_tensor(a, dtype="float64", stop_gradient=False) for a in arrays]
    loss(tensors).backward()
    for i, array in enumerate(arrays):
        numeric = np.zeros_like(array, dtype="float64")
        for place in np.ndindex(array.shape):
            sides = []
            for step in (1e-5, -1e-5):
                moved = [np.array(a, dtype="float64") for a in arrays]
                moved[i][place] += step
                sides.append(loss([argosy.to_tensor(a) for a in moved]).item())
            numeric[place] = (sides[0] - sides[1]) / 2e-5
        found = tensors[i].grad
        found = np.zeros_like(numeric) if found is None else found.numpy()
        np.testing.assert_allclose(found, numeric, rtol=1e-5, atol=1e-6)


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


POSITIVE = dict(low=0.3, high=3.0)
ONE = [
    ("exp", argosy.exp, np.exp, {}),
    ("log", argosy.log, np.log, POSITIVE),
    ("log1p", argosy.log1p, np.log1p, POSITIVE),
    ("sqrt", argosy.sqrt, np.sqrt, POSITIVE),
    ("rsqrt", argosy.rsqrt, lambda x: x ** -0.5, POSITIVE),
    ("reciprocal", argosy.reciprocal, lambda x: 1 / x, POSITIVE),
    ("square", argosy.square, np.square, {}),
    ("abs", argosy.abs, np.abs, {}),
    ("neg", lambda x: -x, np.negative, {}),
    ("sin", argosy.sin, np.sin, {}),
    ("cos", argosy.cos, np.cos, {}),
    ("tanh", argosy.tanh, np.tanh, {}),
    ("sigmoid", argosy.nn.functional.sigmoid, lambda x: 1 / (1 + np.exp(-x)), {}),
    ("pow3", lambda x: x ** 3, lambda x: x ** 3, {}),
    ("clip", lambda x: argosy.clip(x, -1.0, 1.0), lambda x: np.clip(x, -1, 1), {}),
    ("scale", lambda x: argosy.scale(x, 2.0, 1.0, False), lambda x: 2 * (x + 1), {}),
    ("rsub", lambda x: 1.0 - x, lambda x: 1 - x, {}),
    ("rdiv", lambda x: 2.0 / x, lambda x: 2 / x, POSITIVE),
    ("rpow", lambda x: 2.0 ** x, lambda x: 2 ** x, {}),
    ("sum", lambda x: x.sum(), lambda x: x.sum().reshape(1), {}),
    ("sum1", lambda x: x.sum(1), lambda x: x.sum(1), {}),
    ("mean0", lambda x: x.mean(0, keepdim=True), lambda x: x.mean(0, keepdims=True), {}),
    ("max1", lambda x: x.max(1), lambda x: x.max(1), {}),
    ("min", lambda x: x.min([0, 1]), lambda x: x.min().reshape(1), {}),
    ("std", lambda x: argosy.std(x, 1), lambda x: x.std(1, ddof=1), {}),
    ("var", lambda x: argosy.var(x, 0, unbiased=False), lambda x: x.var(0), {}),
    ("logsumexp", lambda x: argosy.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)), {}),
    ("norm", lambda x: argosy.norm(x, axis=1), lambda x: np.sqrt((x * x).sum(1)), {}),
    ("norm1", lambda x: argosy.norm(x, 1, 1), lambda x: np.abs(x).sum(1), {}),
    ("prod", lambda x: argosy.prod(x, 1), lambda x: x.prod(1), {}),
    ("cumsum", lambda x: argosy.cumsum(x, 1), lambda x: x.cumsum(1), {}),
    ("reshape", lambda x: x.reshape([2, -1]), lambda x: x.reshape(2, -1), {}),
    ("flatten", lambda x: x.flatten(), lambda x: x.reshape(-1), {}),
    ("transpose", lambda x: x.transpose([1, 0]), lambda x: x.T, {}),
    ("T", lambda x: x.T, lambda x: x.T, {}),
    ("unsqueeze", lambda x: x.unsqueeze([0, 2]), lambda x: x[None, :, None], {}),
    ("tile", lambda x: x.tile([2, 1]), lambda x: np.tile(x, [2, 1]), {}),
    ("expand", lambda x: x.unsqueeze(0).expand([2, -1, -1]),
     lambda x: np.broadcast_to(x, (2, *x.shape)), {}),
    ("concat", lambda x: argosy.concat([x, x * 2.0], 1), lambda x: np.hstack([x, 2 * x]), {}),
    ("stack", lambda x: argosy.stack([x, x * 2.0], 1), lambda x: np.stack([x, 2 * x], 1), {}),
    ("split", lambda x: argosy.split(x, [1, -1], 1)[1], lambda x: x[:, 1:], {}),
    ("unbind", lambda x: argosy.unbind(x, 1)[2], lambda x: x[:, 2], {}),
    ("roll", lambda x: argosy.roll(x, 1, 1), lambda x: np.roll(x, 1, 1), {}),
    ("flip", lambda x: argosy.flip(x, [1]), lambda x: x[:, ::-1], {}),
    ("sort", lambda x: argosy.sort(x, 1, True), lambda x: -np.sort(-x, 1), {}),
    ("topk", lambda x: argosy.topk(x, 2)[0], lambda x: -np.sort(-x, 1)[:, :2], {}),
    ("tril", argosy.tril, np.tril, {}),
    ("triu", lambda x: argosy.triu(x, 1), lambda x: np.triu(x, 1), {}),
    ("repeat", lambda x: argosy.repeat_interleave(x, 2, 1), lambda x: np.repeat(x, 2, 1), {}),
    ("relu", F.relu, lambda x: np.maximum(x, 0), {}),
    ("leaky_relu", F.leaky_relu, lambda x: np.where(x > 0, x, 0.01 * x), {}),
    ("elu", F.elu, lambda x: np.where(x > 0, x, np.exp(x) - 1), {}),
    ("softplus", F.softplus, lambda x: np.log1p(np.exp(x)), {}),
    ("silu", F.silu, lambda x: x / (1 + np.exp(-x)), {}),
    ("hardsigmoid", F.hardsigmoid, lambda x: np.clip(x / 6 + 0.5, 0, 1), {}),
    ("softmax", F.softmax, softmax, {}),
    ("softmax0", lambda x: F.softmax(x, 0), lambda x: softmax(x, 0), {}),
    ("log_softmax", F.log_softmax, lambda x: np.log(softmax(x)), {}),
    ("normalize", F.normalize, lambda x: x / np.sqrt((x * x).sum(1, keepdims=True)), {}),
    ("layer_norm", lambda x: F.layer_norm(x, [4]),
     lambda x: (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5), {}),
    ("pad", lambda x: F.pad(x, [1, 0, 0, 2], value=1.5),
     lambda x: np.pad(x, [(1, 0), (0, 2)], constant_values=1.5), {}),
]


@pytest.mark.parametrize("ours, theirs, limits", [case[1:] for case in ONE],
                         ids=[case[0] for case in ONE])
def test_functions_of_one_value(ours, theirs, limits):
    x = numbers(3, 4, **limits)
    np.testing.assert_allclose(ours(argosy.to_tensor(x)).numpy(), theirs(x), rtol=1e-6, atol=1e-9)
    check_gradients(ours, [x])


def test_gelu_has_known_values():
    found = F.gelu(argosy.to_tensor([-1.0, 0.0, 1.0, 2.0])).numpy()
    np.testing.assert_allclose(found, [-0.15865526, 0.0, 0.84134474, 1.9544997], atol=1e-6)
    check_gradients(F.gelu, [numbers(5)])
    check_gradients(lambda x: F.gelu(x, True), [numbers(5)])


TWO = [
    ("add", lambda a, b: a + b, np.add),
    ("sub", lambda a, b: a - b, np.subtract),
    ("mul", lambda a, b: a * b, np.multiply),
    ("div", lambda a, b: a / b, np.divide),
    ("pow", lambda a, b: a ** b, np.power),
    ("maximum", argosy.maximum, np.maximum),
    ("minimum", argosy.minimum, np.minimum),
]


@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (1, 4))], ids=str)
@pytest.mark.parametrize("ours, theirs", [case[1:] for case in TWO], ids=[c[0] for c in TWO])
def test_functions_of_two_values_broadcast(ours, theirs, shapes):
    a, b = (numbers(*shape, **POSITIVE) for shape in shapes)
    b = b + 0.01  # the two never tie
    found = ours(argosy.to_tensor(a), argosy.to_tensor(b)).numpy()
    np.testing.assert_allclose(found, theirs(a, b), rtol=1e-6)
    check_gradients(ours, [a, b])


@pytest.mark.parametrize("shapes", [((3, 4), (4, 2)), ((2, 3, 4), (4, 2)), ((2, 3, 4), (2, 4, 2)),
                                    ((4,), (4, 2)), ((3, 4), (4,)), ((4,), (4,)),
                                    ((5, 1, 3, 4), (2, 4, 2))], ids=str)
def test_products_of_matrices(shapes):
    a, b = (numbers(*shape) for shape in shapes)
    found = argosy.matmul(argosy.to_tensor(a), argosy.to_tensor(b)).numpy()
    np.testing.assert_allclose(found, np.atleast_1d(a @ b), rtol=1e-6)
    check_gradients(argosy.matmul, [a, b])


@pytest.mark.parametrize("text, shapes", [("ij,jk->ik", [(2, 3), (3, 4)]),
                                          ("bij,bjk->bik", [(2, 2, 3), (2, 3, 2)]),
                                          ("bi,bj->bij", [(2, 3), (2, 4)]),
                                          ("ij->ji", [(2, 3)]), ("ij->", [(2, 3)]),
                                          ("bi,oij,bj->bo", [(2, 3), (2, 3, 2), (2, 2)]),
                                          ("bhid,bhjd->bhij", [(2, 2, 3, 2), (2, 2, 4, 2)])])
def test_einsum(text, shapes):
    arrays = [numbers(*shape) for shape in shapes]
    found = argosy.einsum(text, *map(argosy.to_tensor, arrays)).numpy()
    np.testing.assert_allclose(found, np.atleast_1d(np.einsum(text, *arrays)), rtol=1e-6)
    check_gradients(lambda *x: argosy.einsum(text, *x), arrays)


def test_whole_numbers_compute():
    a, b = np.array([[7, -7], [6, 5]]), np.array([3, -4])
    x, y = argosy.to_tensor(a), argosy.to_tensor(b)
    for ours, theirs in [(x + y, a + b), (x - 1, a - 1), (x * 2, a * 2), (x // y, a // b),
                         (x % y, a % b), (x.sum(1), a.sum(1)), (x.max(0), a.max(0)),
                         (argosy.maximum(x, y), np.maximum(a, b)), (x == 6, a == 6),
                         (x.abs(), np.abs(a)), ((x > 0).sum(), [3])]:
        np.testing.assert_array_equal(ours.numpy(), theirs)
        assert ours.dtype in ("int64", "bool")
    np.testing.assert_allclose((x / y).numpy(), a / b, rtol=1e-6)
    assert (x * 0.5).dtype == "float32"
    with pytest.raises(argosy.DataError, match="by 0"):
        x // 0


def test_types_meet():
    x = argosy.to_tensor([1.5])
    assert (x + argosy.to_tensor([1])).dtype == "float32"
    assert (argosy.to_tensor([True]) * x).dtype == "float32"
    assert (x + argosy.to_tensor([1.0], dtype="float64")).dtype == "float64"
    assert (np.array([2.0], dtype="float32") * x).item() == 3.0


def test_logic():
    a, b = np.array([True, True, False]), np.array([True, False, False])
    x, y = argosy.to_tensor(a), argosy.to_tensor(b)
    for ours, theirs in [(x & y, a & b), (x | y, a | b), (x ^ y, a ^ b), (~x, ~a),
                         (argosy.all(x), [False]), (argosy.any(x), [True])]:
        np.testing.assert_array_equal(ours.numpy(), theirs)
    z = argosy.to_tensor([1.0, float("nan"), float("inf")])
    np.testing.assert_array_equal(argosy.isnan(z).numpy(), [False, True, False])
    np.testing.assert_array_equal(argosy.isfinite(z).numpy(), [True, False, False])


def test_places_and_choices():
    x = argosy.to_tensor(np.arange(12, dtype="float32").reshape(3, 4))
    index = argosy.to_tensor([2, 0])
    np.testing.assert_array_equal(argosy.gather(x, index).numpy(), x.numpy()[[2, 0]])
    np.testing.assert_array_equal(argosy.index_select(x, index, 1).numpy(), x.numpy()[:, [2, 0]])
    pairs = argosy.to_tensor([[0, 1], [2, 3]])
    np.testing.assert_array_equal(argosy.gather_nd(x, pairs).numpy(), [1, 11])
    np.testing.assert_array_equal(argosy.masked_select(x, x > 8).numpy(), [9, 10, 11])
    np.testing.assert_array_equal(argosy.where(x > 5, x, 0.0).numpy(),
                                  np.where(x.numpy() > 5, x.numpy(), 0))
    np.testing.assert_array_equal(argosy.nonzero(x > 9).numpy(), [[2, 2], [2, 3]])
    np.testing.assert_array_equal(argosy.argsort(x, 1, True).numpy()[0], [3, 2, 1, 0])
    np.testing.assert_array_equal(argosy.argmax(x, 1).numpy(), [3, 3, 3])
    np.testing.assert_array_equal(argosy.argmin(x).numpy(), [0])
    updates = argosy.ones([2, 4])
    np.testing.assert_array_equal(argosy.scatter(x, index, updates).numpy()[[0, 2]], np.ones((2, 4)))
    np.testing.assert_array_equal(argosy.one_hot(index, 3).numpy(), [[0, 0, 1], [1, 0, 0]])
    check_gradients(lambda v: argosy.masked_select(v, argosy.to_tensor([True, False, True])),
                    [numbers(3)])


def test_creation():
    assert argosy.zeros([2, 3]).numpy().tolist() == [[0.0] * 3] * 2
    assert argosy.full([2], 7).dtype == "int64" and argosy.full([2], 7.0).dtype == "float32"
    assert argosy.arange(3).numpy().tolist() == [0, 1, 2]
    assert argosy.arange(1, 2, 0.5).dtype == "float32"
    assert argosy.ones_like(argosy.zeros([2], "int32")).dtype == "int32"
    assert argosy.eye(2).numpy().tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert sorted(argosy.randperm(5).numpy()) == [0, 1, 2, 3, 4]
    drawn = argosy.randn([10000]).numpy()
    assert abs(drawn.mean()) < 0.05 and abs(drawn.std() - 1) < 0.05


def test_losses():
    logits, label = numbers(4, 3), np.array([0, 2, 1, 2])
    p = softmax(logits)
    expected = -np.log(p[np.arange(4), label])
    x = argosy.to_tensor(logits)
    for shape in ([4], [4, 1]):
        y = argosy.to_tensor(label.reshape(shape))
        np.testing.assert_allclose(F.cross_entropy(x, y).numpy(), [expected.mean()], rtol=1e-6)
        np.testing.assert_allclose(F.cross_entropy(x, y, reduction="none").numpy(),
                                   expected.reshape(shape), rtol=1e-6)
    y = argosy.to_tensor(label)
    np.testing.assert_allclose(F.cross_entropy(x, y, ignore_index=2).numpy(),
                               [expected[[0, 2]].mean()], rtol=1e-6)
    weight = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(
        F.cross_entropy(x, y, weight=argosy.to_tensor(weight)).numpy(),
        [(expected * weight[label]).sum() / weight[label].sum()], rtol=1e-6)
    soft = softmax(numbers(4, 3))
    np.testing.assert_allclose(
        F.cross_entropy(x, argosy.to_tensor(soft), soft_label=True).numpy(),
        [-(soft * np.log(p)).sum(1).mean()], rtol=1e-6)
    np.testing.assert_allclose(
        F.nll_loss(F.log_softmax(x), y).numpy(), [expected.mean()], rtol=1e-6)
    check_gradients(lambda v: F.cross_entropy(v, y), [logits])
    probability, hit = numbers(6, low=0.05, high=0.95), np.array([0, 1, 1, 0, 1, 0.0])
    target = argosy.to_tensor(hit)
    entropy = -(hit * np.log(probability) + (1 - hit) * np.log(1 - probability))
    np.testing.assert_allclose(
        F.binary_cross_entropy(argosy.to_tensor(probability), target).numpy(), [entropy.mean()],
        rtol=1e-6)
    score = np.log(probability / (1 - probability))
    np.testing.assert_allclose(
        F.binary_cross_entropy_with_logits(argosy.to_tensor(score), target).numpy(),
        [entropy.mean()], rtol=1e-6)
    check_gradients(lambda v: F.binary_cross_entropy_with_logits(v, target), [score])
    check_gradients(lambda v: F.smooth_l1_loss(v, target), [score])
    np.testing.assert_allclose(F.mse_loss(argosy.to_tensor(score), target).numpy(),
                               [((score - hit) ** 2).mean()], rtol=1e-6)


def test_convolutions():
    x, w = numbers(2, 2, 5), numbers(3, 2, 3)
    padded = np.pad(x, [(0, 0), (0, 0), (1, 1)])
    expected = np.stack([np.einsum("bck,ock->bo", padded[:, :, i:i + 3], w)
                         for i in range(0, 5, 2)], -1)
    found = F.conv1d(argosy.to_tensor(x), argosy.to_tensor(w), stride=2, padding=1)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-9)
    check_gradients(lambda a, b: F.conv1d(a, b, padding=1), [x, w])
    picture, filters = numbers(1, 2, 4, 4), numbers(2, 2, 3, 3)
    same = F.conv2d(argosy.to_tensor(picture), argosy.to_tensor(filters), padding="same")
    assert same.shape == [1, 2, 4, 4]
    last = F.conv2d(argosy.to_tensor(picture.transpose(0, 2, 3, 1)), argosy.to_tensor(filters),
                    padding="same", data_format="NHWC")
    np.testing.assert_allclose(last.numpy().transpose(0, 3, 1, 2), same.numpy(), rtol=1e-6)


def test_batch_norm_trains_and_tests():
    layer = nn.BatchNorm1D(3)
    x = numbers(8, 3).astype("float32")
    y = layer(argosy.to_tensor(x)).numpy()
    np.testing.assert_allclose(y, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-5), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(layer._mean.numpy(), 0.1 * x.mean(0), rtol=1e-5)
    layer.eval()
    moved = (x - layer._mean.numpy()) / np.sqrt(layer._variance.numpy() + 1e-5)
    np.testing.assert_allclose(layer(argosy.to_tensor(x)).numpy(), moved, rtol=1e-4, atol=1e-5)


def test_gru_is_its_cell_step_by_step():
    layer = nn.GRU(3, 4, num_layers=2, direction="bidirect")
    x = numbers(2, 5, 3).astype("float32")
    outputs, last = layer(argosy.to_tensor(x))
    assert outputs.shape == [2, 5, 8] and last.shape == [4, 2, 4]
    single = nn.GRU(3, 4)
    cell = single._sub_layers["0"]
    state = None
    for step in range(5):
        _, state = cell(argosy.to_tensor(x[:, step]), state)
    outputs, last = single(argosy.to_tensor(x))
    np.testing.assert_allclose(last.numpy()[0], state.numpy(), rtol=1e-6)
    shorter, _ = single(argosy.to_tensor(x), sequence_length=argosy.to_tensor([5, 2]))
    assert not shorter.numpy()[1, 2:].any() and shorter.numpy()[0].all()


def test_dropout_keeps_the_mean_and_rests_in_tests():
    x = argosy.ones([20000])
    y = F.dropout(x, 0.25)
    assert abs(y.numpy().mean() - 1) < 0.05 and set(np.unique(y.numpy())) <= {0.0, np.float32(4 / 3)}
    assert F.dropout(x, 0.25, training=False) is x
