"""Layers: what they hold, save and learn."""

import numpy as np
import pytest

import argosy
from argosy import nn, optimizer
from argosy.nn import functional as F


class Tower(nn.Layer):
    """Layers in lists, a parameter and a buffer."""

    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList([nn.Linear(4, 4), nn.Linear(4, 2)])
        self.scale = self.create_parameter([1], default_initializer=nn.initializer.Constant(2.0))
        self.register_buffer("seen", argosy.zeros([1]))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        """A value."""
        for layer in self.layers:
            x = layer(x)
        return self.drop(x) * self.scale


def test_names_of_parameters_are_paddles():
    with argosy.unique_name.guard():
        net = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1), nn.Embedding(5, 2))
        named = nn.Linear(2, 2, weight_attr=argosy.ParamAttr(name="w"), bias_attr=False)
    assert [p.name for p in net.parameters()] == [
        "linear_0.w_0", "linear_0.b_0", "linear_1.w_0", "linear_1.b_0", "embedding_0.w_0"]
    assert [p.name for p in named.parameters()] == ["w"] and named.bias is None


def test_a_layer_knows_what_it_holds():
    net = Tower()
    assert [name for name, _ in net.named_parameters()] == [
        "scale", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert list(net.state_dict()) == ["scale", "seen", "layers.0.weight", "layers.0.bias",
                                      "layers.1.weight", "layers.1.bias"]
    assert len(net.sublayers()) == 4 and len(list(net.children())) == 2
    net.eval()
    assert not net.drop.training
    x = argosy.ones([2, 4])
    np.testing.assert_array_equal(net(x).numpy(), net(x).numpy())
    net.train()
    assert net.drop.training


def test_hooks_see_and_change():
    layer = nn.Linear(2, 2)
    seen = []
    before = layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0] * 0.0,))
    after = layer.register_forward_post_hook(lambda layer, inputs, out: seen.append(out.shape))
    out = layer(argosy.ones([3, 2]))
    np.testing.assert_array_equal(out.numpy(), np.zeros([3, 2]))
    before.remove()
    after.remove()
    assert layer(argosy.ones([3, 2])).numpy().any() and seen == [[3, 2]]


def test_states_are_saved_and_loaded(tmp_path):
    net, other = Tower(), Tower()
    net.seen = argosy.to_tensor([5.0])
    path = tmp_path / "folder" / "net.state"
    argosy.save(net.state_dict(), path)
    assert other.set_state_dict(argosy.load(path)) == ([], [])
    for name, value in other.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), net.state_dict()[name].numpy())
    missing, unexpected = other.set_state_dict({"scale": argosy.ones([1]), "x": argosy.ones([1])})
    assert "seen" in missing and unexpected == ["x"]
    with pytest.raises(argosy.ConfigError, match="layers.0.weight"):
        other.set_state_dict({"layers.0.weight": np.zeros([4, 5], "float32")})


def test_a_damaged_file_is_refused(tmp_path):
    path = tmp_path / "x"
    argosy.save({"a": argosy.ones([100]), "b": [1, 2.5, "c", None, (True,)]}, path)
    assert argosy.load(path)["b"] == [1, 2.5, "c", None, (True,)]
    data = bytearray(path.read_bytes())
    data[200] ^= 1
    path.write_bytes(data)
    with pytest.raises(argosy.DataError, match="damaged"):
        argosy.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(argosy.DataError, match="not a file"):
        argosy.load(path)
    with pytest.raises(argosy.ConfigError, match=r"\['f'\] is a function"):
        argosy.save({"f": lambda: 0}, path)


@pytest.mark.parametrize("init, check", [
    (nn.initializer.Constant(3.0), lambda w: (w == 3).all()),
    (nn.initializer.Uniform(-0.5, 0.5), lambda w: abs(w).max() < 0.5 and w.std() > 0.25),
    (nn.initializer.Normal(1.0, 0.1), lambda w: abs(w.mean() - 1) < 0.01),
    (nn.initializer.TruncatedNormal(0.0, 0.1), lambda w: abs(w).max() <= 0.2),
    (nn.initializer.XavierUniform(), lambda w: 0.9 < abs(w).max() / np.sqrt(6 / 150) <= 1),
    (nn.initializer.XavierNormal(), lambda w: abs(w.std() / np.sqrt(2 / 150) - 1) < 0.05),
    (nn.initializer.KaimingUniform(), lambda w: 0.9 < abs(w).max() / np.sqrt(6 / 100) <= 1),
    (nn.initializer.Assign(np.arange(5000.0).reshape(100, 50)), lambda w: w[99, 49] == 4999),
], ids=lambda value: type(value).__name__)
def test_first_values(init, check):
    weight = nn.Linear(100, 50, weight_attr=argosy.ParamAttr(initializer=init)).weight
    assert check(weight.numpy())


def test_first_values_depend_on_seed_and_name_only():
    def weight():
        with argosy.unique_name.guard():
            return nn.Linear(3, 3).weight.numpy().copy()

    argosy.seed(1)
    first = weight()
    argosy.rand([10])
    np.testing.assert_array_equal(first, weight())
    argosy.seed(2)
    assert not np.array_equal(first, weight())


def test_a_layer_without_super_init_is_refused():
    class Bad(nn.Layer):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(argosy.ConfigError, match="super"):
        Bad()


def test_an_mlp_learns_classes():
    argosy.seed(3)
    random = np.random.default_rng(0)
    centres = random.standard_normal((10, 784)).astype("float32")
    classes = random.integers(0, 10, 512)
    pixels = centres[classes] + random.standard_normal((512, 784)).astype("float32")
    net = nn.Sequential(nn.Linear(784, 64), nn.ReLU(), nn.Linear(64, 10))
    adam = optimizer.Adam(1e-3, parameters=net.parameters())
    for _ in range(4):
        for at in range(0, 512, 64):
            x, y = argosy.to_tensor(pixels[at:at + 64]), argosy.to_tensor(classes[at:at + 64])
            loss = F.cross_entropy(net(x), y)
            loss.backward()
            adam.step()
            adam.clear_grad()
    guess = net(argosy.to_tensor(pixels)).numpy().argmax(1)
    assert (guess == classes).mean() > 0.95


class Ctr(nn.Layer):
    """Slots of ids, looked up one by one, and an MLP."""

    def __init__(self, rows, slots, dim):
        super().__init__()
        self.table = nn.Embedding(rows, dim, sparse=True)
        self.mlp = nn.Sequential(nn.Linear(slots * dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, slots):
        """A logit for each sample."""
        return self.mlp(argosy.concat([self.table(ids) for ids in slots], 1))


def test_a_ctr_model_learns_and_touches_only_rows_it_uses():
    argosy.seed(4)
    random = np.random.default_rng(1)
    rows, slots = 100_000, 4
    ids = random.integers(0, 50, (1024, slots)) + 1000 * np.arange(slots)
    taste = random.standard_normal((slots, 50))
    score = sum(taste[s, ids[:, s] - 1000 * s] for s in range(slots))
    clicks = (score > 0).astype("float32").reshape(-1, 1)
    net = Ctr(rows, slots, 8)
    before = net.table.weight.numpy().copy()
    adam = optimizer.Adam(0.01, parameters=net.parameters())
    losses = []
    for _ in range(8):
        for at in range(0, 1024, 128):
            batch = [argosy.to_tensor(ids[at:at + 128, s]) for s in range(slots)]
            target = argosy.to_tensor(clicks[at:at + 128])
            loss = F.binary_cross_entropy_with_logits(net(batch), target)
            loss.backward()
            assert net.table.weight.grad.rows.shape[0] <= slots * 50
            adam.step()
            adam.clear_grad()
            losses.append(loss.item())
    assert np.mean(losses[-8:]) < 0.2 < 0.5 < losses[0]
    changed = np.flatnonzero((net.table.weight.numpy() != before).any(1))
    assert set(changed) == set(np.unique(ids))
