"""Labels and numbers that nobody should train on are named, wherever they come from."""

import numpy as np
import pytest

import argosy
from argosy import nn, optimizer, static
from argosy.nn import functional as F


@pytest.fixture
def program():
    """A program of its own."""
    argosy.enable_static()
    with argosy.unique_name.guard(), static.program_guard(static.Program(), static.Program()):
        yield static.default_main_program()
    argosy.disable_static()


@pytest.fixture(autouse=True)
def policy():
    """As it is at first, afterwards too."""
    yield
    argosy.set_check_nan("fail")


def clicks(loss_of):
    """(executor, loss) of a program that trains on x and label."""
    x, label = static.data("x", [-1, 2]), static.data("label", [-1, 1])
    loss = argosy.mean(loss_of(static.nn.fc(x, 1), label))
    optimizer.SGD(0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe, loss


LOSSES = [lambda x, label: F.log_loss(F.sigmoid(x), label),
          F.binary_cross_entropy_with_logits,
          lambda x, label: F.binary_cross_entropy(F.sigmoid(x), label)]


@pytest.mark.parametrize("loss_of", LOSSES)
@pytest.mark.parametrize("label", [2, -1, np.nan])
def test_a_label_outside_of_0_to_1_is_refused_by_the_loss(program, loss_of, label):
    exe, loss = clicks(loss_of)
    feed = {"x": np.ones((3, 2), "float32"), "label": np.array([[1], [0.5], [label]], "float32")}
    with pytest.raises(argosy.DataError, match=f"test_bad_values.py:[0-9]+: .*a label is {label},"):
        exe.run(feed=feed, fetch_list=[loss])
    feed["label"][2] = 0  # a share, as smoothing gives it, is fine
    assert np.isfinite(exe.run(feed=feed, fetch_list=[loss])[0])


@pytest.mark.parametrize("loss_of", LOSSES)
def test_a_dynamic_graph_refuses_labels_too(loss_of):
    x = argosy.to_tensor(np.ones((2, 1), "float32"))
    with pytest.raises(argosy.DataError, match="a label is 2, expected 0 or 1"):
        loss_of(x, argosy.to_tensor(np.array([[0], [2]], "float32")))


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
@pytest.mark.parametrize("label", ["2", "-1", "0.5"])
def test_a_file_has_labels_0_and_1(program, tmp_path, kind, label):
    exe, _ = clicks(F.binary_cross_entropy_with_logits)
    (tmp_path / "part-0").write_text(f"2 1 1 1 0\n2 1 1 1 {label}\n")
    data = argosy.dataset.DatasetFactory().create_dataset(kind)
    data.set_use_var([program.var("x"), program.var("label")])
    data.set_batch_size(1)
    data.set_filelist([str(tmp_path / "part-0")])
    where = "part-0:2: label 'label'"
    if kind == "InMemoryDataset":  # which has read its lines before it knows the program
        data.load_into_memory()
        where = "label 'label' of instance 0 of a batch"
    with pytest.raises(argosy.DataError, match=f"{where} is {label}, expected 0 or 1 for log loss"):
        exe.train_from_dataset(program, data)


def exploding():
    """(executor, loss) of a program whose weights overflow after a few steps."""
    x, y = static.data("x", [-1, 2]), static.data("y", [-1, 1])
    loss = argosy.mean(F.square_error_cost(static.nn.fc(x, 1), y))
    optimizer.SGD(1e30).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    return exe, loss


def run_often(exe, loss):
    feed = {"x": np.ones((3, 2), "float32"), "y": np.ones((3, 1), "float32")}
    for _ in range(20):
        exe.run(feed=feed, fetch_list=[loss])


def test_a_step_that_is_not_finite_is_named(program):
    with pytest.raises(argosy.DataError, match="step [0-9]+: the .* is not finite: .*; first: "):
        run_often(*exploding())


def test_a_program_with_a_nan_is_not_saved(program, tmp_path):
    argosy.set_check_nan("off")
    exe, loss = exploding()
    run_often(exe, loss)
    with pytest.raises(argosy.DataError, match="not saved, 'fc_0.w_0' .* holds NaN or infinity"):
        static.save_persistables(exe, str(tmp_path), program)


def test_check_nan_has_three_words():
    with pytest.raises(argosy.ConfigError, match="expected fail, warn or off, did you mean warn"):
        argosy.set_check_nan("warm")


def layer_and_step(rate):
    """A layer, and what trains it a little."""
    layer = nn.Linear(2, 1)
    sgd = optimizer.SGD(rate, parameters=layer.parameters())
    x = argosy.to_tensor(np.ones((3, 2), "float32"))

    def step():
        loss = argosy.mean(layer(x) ** 2)
        loss.backward()
        sgd.step()
        sgd.clear_grad()

    return layer, step


def test_a_dynamic_gradient_that_is_not_finite_names_its_parameter():
    layer, step = layer_and_step(1e30)
    with pytest.raises(argosy.DataError,
                       match=f"step [0-9]+: the gradient of parameter '{layer.weight.name}' is not"):
        for _ in range(20):
            step()


def test_a_dynamic_nan_is_not_saved(tmp_path):
    argosy.set_check_nan("off")
    layer, step = layer_and_step(1e30)
    for _ in range(20):
        step()
    with pytest.raises(argosy.DataError, match="'weight'.* holds NaN or infinity"):
        argosy.save(layer.state_dict(), tmp_path / "layer")


@pytest.mark.parametrize("name", ["a b", "a,b", "a(b)", "a[0]", "a=b"])
def test_names_that_cannot_be_read_back_are_refused(program, name):
    with pytest.raises(argosy.ConfigError, match="test_bad_values.py:[0-9]+: .*without blanks"):
        static.data(name, [-1, 2])
    x = static.data("x", [-1, 2])
    with pytest.raises(argosy.ConfigError, match="test_bad_values.py:[0-9]+: .*without blanks"):
        static.nn.fc(x, 1, weight_attr=argosy.ParamAttr(name=name))
