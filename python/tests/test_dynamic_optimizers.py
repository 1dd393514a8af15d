"""Optimizers and learning rates, against numbers of PyTorch."""

import numpy as np
import pytest

import argosy
from argosy import nn, optimizer, regularizer
from argosy.optimizer import lr

# Losses of five steps, then the weights and the bias, of torch 2 with
#   w = torch.tensor([1.0, -2.0, 3.0], requires_grad=True); b = torch.tensor([0.5], requires_grad=True)
#   x = torch.tensor([[1.0, 2.0, -1.0], [0.5, -1.0, 2.0]]); y = torch.tensor([1.0, -1.0])
#   loss = ((x @ w + b - y) ** 2).mean()
# and SGD(0.1), SGD(0.1, weight_decay=0.1), SGD(0.1) behind clip_grad_norm_(1.0), SGD(0.05, momentum=0.9),
# the same with nesterov, Adam(0.1), AdamW(0.1, weight_decay=0.05) and Adagrad(0.5, eps=1e-6).
TORCH = {
    "sgd": ([71.125, 2.409063, 0.67891, 0.235415, 0.082022],
            [0.760187, 0.298597, -0.232966, -0.434369]),
    "sgd_decay": ([71.125, 2.253625, 0.635903, 0.213972, 0.072508],
                  [0.722784, 0.295304, -0.235943, -0.416135]),
    "sgd_clip": ([71.125, 67.64032, 64.245285, 60.939827, 57.7239],
                 [1.019732, -1.675342, 2.623776, 0.448433]),
    "momentum": ([71.125, 22.802265, 2.02497, 28.390766, 47.195141],
                 [0.535144, 1.69238, -2.312759, -1.120379]),
    "nesterov": ([71.125, 3.191554, 8.439409, 12.103006, 5.355455],
                 [0.385121, 0.263907, -0.752202, -0.988296]),
    "adam": ([71.125, 65.781242, 60.656242, 55.753445, 51.075783],
             [1.493998, -1.502314, 2.50207, 0.000688]),
    "adamw": ([71.125, 65.177895, 59.528847, 54.177544, 49.123024],
              [1.463983, -1.458071, 2.433073, -0.006456]),
    "adagrad": ([71.125, 46.531254, 33.787186, 25.572498, 19.800194],
                [2.121884, -0.61572, 1.59874, -0.997295]),
}
OURS = {
    "sgd": lambda p: optimizer.SGD(0.1, p),
    "sgd_decay": lambda p: optimizer.SGD(0.1, p, weight_decay=0.1),
    "sgd_clip": lambda p: optimizer.SGD(0.1, p, grad_clip=nn.ClipGradByGlobalNorm(1.0)),
    "momentum": lambda p: optimizer.Momentum(0.05, 0.9, p),
    "nesterov": lambda p: optimizer.Momentum(0.05, 0.9, p, use_nesterov=True),
    "adam": lambda p: optimizer.Adam(0.1, parameters=p),
    "adamw": lambda p: optimizer.AdamW(0.1, parameters=p, weight_decay=0.05),
    "adagrad": lambda p: optimizer.Adagrad(0.5, parameters=p),
}


def parameter(values, **attr):
    """A parameter with these first values."""
    array = np.array(values, dtype="float32")
    first = nn.initializer.Assign(array)
    return argosy.create_parameter(array.shape, "float32",
                                   argosy.ParamAttr(initializer=first, **attr))


def steps_of(make, count):
    """Losses, parameters and the optimizer after some steps."""
    w, b = parameter([1.0, -2.0, 3.0]), parameter([0.5])
    x = argosy.to_tensor([[1.0, 2.0, -1.0], [0.5, -1.0, 2.0]])
    y = argosy.to_tensor([1.0, -1.0])
    chosen, losses = make([w, b]), []
    for _ in range(count):
        loss = ((x @ w + b - y) ** 2).mean()
        loss.backward()
        chosen.step()
        chosen.clear_grad()
        losses.append(loss.item())
    return losses, np.concatenate([w.numpy(), b.numpy()]), chosen


@pytest.mark.parametrize("name", TORCH)
def test_steps_are_those_of_torch(name):
    losses, weights, _ = steps_of(OURS[name], 5)
    np.testing.assert_allclose(losses, TORCH[name][0], rtol=2e-5)
    np.testing.assert_allclose(weights, TORCH[name][1], rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("make", [
    lambda p: optimizer.Lamb(0.05, parameters=p),
    lambda p: optimizer.LarsMomentum(0.5, lars_coeff=0.1, parameters=p),
    lambda p: optimizer.Ftrl(0.5, parameters=p),
], ids=["lamb", "lars", "ftrl"])
def test_other_rules_lower_the_loss(make):
    losses, _, _ = steps_of(make, 30)
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("clip, expected", [
    (nn.ClipGradByValue(0.5), [0.5, 0.5]),
    (nn.ClipGradByNorm(1.0), [0.6, 0.8]),
    (nn.ClipGradByGlobalNorm(2.5), [1.5, 2.0]),
])
def test_clips(clip, expected):
    w = parameter([0.0, 0.0])
    (w * argosy.to_tensor([3.0, 4.0])).sum().backward()
    optimizer.SGD(1.0, [w], grad_clip=clip).step()
    np.testing.assert_allclose(-w.numpy(), expected, rtol=1e-6)


def test_parameters_have_their_own_ways():
    slow, loose, decayed, frozen = (parameter([1.0], **attr) for attr in (
        dict(learning_rate=0.1), dict(need_clip=False),
        dict(regularizer=regularizer.L2Decay(1.0)), dict(trainable=False)))
    (slow * 5.0 + loose * 5.0 + decayed * 5.0 + frozen).backward()
    optimizer.SGD(1.0, [slow, loose, decayed, frozen], weight_decay=0.0,
                  grad_clip=nn.ClipGradByNorm(1.0)).step()
    found = [p.item() for p in (slow, loose, decayed, frozen)]
    np.testing.assert_allclose(found, [0.9, -4.0, -1.0, 1.0], rtol=1e-6)


def test_groups_have_their_own_rates_and_decay():
    a, b = parameter([1.0]), parameter([1.0])
    (a + b).backward()
    optimizer.SGD(0.1, [{"params": [a]}, {"params": [b], "learning_rate": 2.0,
                                          "weight_decay": 1.0}]).step()
    np.testing.assert_allclose([a.item(), b.item()], [0.9, 0.6], rtol=1e-6)


@pytest.mark.parametrize("name", ["sgd", "sgd_decay", "sgd_clip", "momentum", "adagrad"])
def test_rows_of_a_table_follow_the_same_rule(name):
    """Where every row is used, and where rules leave others alone, sparse is dense."""
    def trained(sparse):
        table = parameter(np.arange(8, dtype="float32").reshape(4, 2))
        chosen = OURS[name]([table])
        for ids in ([0, 2, 2, 1, 3], [3, 1, 0, 2]):
            rows = nn.functional.embedding(argosy.to_tensor(ids), table, sparse=sparse)
            (rows * rows).sum().backward()
            chosen.step()
            chosen.clear_grad()
        return table.numpy()

    np.testing.assert_allclose(trained(True), trained(False), rtol=1e-5)


def test_adam_is_lazy_on_rows():
    table = parameter(np.ones([3, 2]))
    adam = optimizer.Adam(0.1, parameters=[table])
    for ids in ([0], [1]):
        nn.functional.embedding(argosy.to_tensor(ids), table, sparse=True).sum().backward()
        adam.step()
        adam.clear_grad()
    found = table.numpy()
    # Of a first step, with the bias correction of the second, as Paddle takes it for rows.
    step = 0.1 * (0.1 / (1 - 0.9 ** 2)) / (0.001 / (1 - 0.999 ** 2)) ** 0.5
    assert found[2, 0] == 1.0 and abs(found[0, 0] - (1 - step)) < 1e-6 and found[1, 0] < 1.0


def test_lamb_takes_rows_as_the_whole_parameter():
    table = parameter(np.ones([3, 2]))
    lamb = optimizer.Lamb(0.1, parameters=[table])
    nn.functional.embedding(argosy.to_tensor([0]), table, sparse=True).sum().backward()
    lamb.step()
    assert (table.numpy() != 1).all()  # its decay touches every row


def test_states_are_taken_back(tmp_path):
    _, _, first = steps_of(OURS["adam"], 3)
    argosy.save(first.state_dict(), tmp_path / "adam")
    names = [p.name for p in first._parameter_list]
    assert f"{names[0]}_moment1_0" in first.state_dict()
    twin = optimizer.Adam(0.1, parameters=first._parameter_list)
    twin.set_state_dict(argosy.load(tmp_path / "adam"))
    for key, value in first.state_dict().items():
        np.testing.assert_array_equal(np.asarray(twin.state_dict()[key]), np.asarray(value))
    with pytest.raises(argosy.ConfigError, match="lacks"):
        twin.set_state_dict({f"{names[0]}_steps_0": 3})


def test_minimize_runs_backward_if_nobody_has():
    w = parameter([3.0])
    sgd = optimizer.SGD(0.1, [w])
    sgd.minimize(w * w)
    assert abs(w.item() - 2.4) < 1e-6
    sgd.clear_grad()
    loss = w * w
    loss.backward()
    sgd.minimize(loss)
    assert abs(w.item() - 1.92) < 1e-6


def test_what_has_no_effect_is_refused():
    with pytest.raises(argosy.ConfigError, match="multi_precision"):
        optimizer.Adam(multi_precision=True)
    with pytest.raises(argosy.ConfigError, match="parameters="):
        optimizer.SGD(0.1).step()
    with pytest.raises(argosy.ConfigError, match="changed in place"):
        w = parameter([3.0])
        loss = w * w
        w.grad = argosy.ones([1])
        optimizer.SGD(0.1, [w]).step()
        loss.backward()


def rates(scheduler, count):
    """The first rates."""
    found = []
    for _ in range(count):
        found.append(scheduler())
        scheduler.step()
    return found


@pytest.mark.parametrize("make, expected", [
    (lambda: lr.PiecewiseDecay([2, 3], [1.0, 0.5, 0.1]), [1.0, 1.0, 0.5, 0.1]),
    (lambda: lr.ExponentialDecay(1.0, 0.5), [1.0, 0.5, 0.25]),
    (lambda: lr.NaturalExpDecay(1.0, 1.0), [1.0, np.exp(-1), np.exp(-2)]),
    (lambda: lr.InverseTimeDecay(1.0, 1.0), [1.0, 1 / 2, 1 / 3]),
    (lambda: lr.StepDecay(1.0, 2), [1.0, 1.0, 0.1, 0.1, 0.01]),
    (lambda: lr.MultiStepDecay(1.0, [1, 3]), [1.0, 0.1, 0.1, 0.01]),
    (lambda: lr.PolynomialDecay(1.0, 4, end_lr=0.0), [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]),
    (lambda: lr.CosineAnnealingDecay(1.0, 2), [1.0, 0.5, 0.0, 0.5]),
    (lambda: lr.LinearWarmup(lr.StepDecay(1.0, 1), 2, 0.0, 1.0), [0.0, 0.5, 1.0, 0.1]),
    (lambda: lr.LambdaDecay(2.0, lambda t: 1 / (t + 1)), [2.0, 1.0]),
    (lambda: lr.NoamDecay(4, 2), [0.0, 0.5 * 2 ** -1.5, 0.5 * 2 ** -0.5, 0.5 * 3 ** -0.5]),
])
def test_learning_rates(make, expected):
    np.testing.assert_allclose(rates(make(), len(expected)), expected, rtol=1e-6, atol=1e-12)
    first, second = make(), make()
    rates(first, 2)
    second.set_state_dict(first.state_dict())
    assert second() == first()


def test_schedules_for_programs():
    assert lr.PiecewiseDecay([10], [1.0, 0.5])._schedule() == "piecewise(1.0, 10, 0.5)"
    warm = lr.LinearWarmup(lr.ExponentialDecay(1.0, 0.5), 5, 0.0, 1.0)
    assert warm._schedule() == ("linear_warmup(steps=5, start=0.0) then "
                                "exponential(1.0, steps=1, factor=0.5)")
    with pytest.raises(argosy.ConfigError, match="NoamDecay"):
        lr.NoamDecay(4, 2)._schedule()
    with pytest.raises(argosy.ConfigError, match="end_lr"):
        lr.LinearWarmup(0.5, 5, 0.0, 1.0)._schedule()


def test_a_plateau_lowers_the_rate():
    plateau = lr.ReduceOnPlateau(1.0, patience=1)
    for loss in (1.0, 0.5, 0.5, 0.5):
        plateau.step(loss)
    assert abs(plateau() - 0.1) < 1e-12


def test_the_optimizer_follows_a_scheduler():
    w = parameter([0.0])
    rate = lr.StepDecay(1.0, 1)
    sgd = optimizer.SGD(rate, [w])
    for _ in range(3):
        (w * 1.0).backward()
        sgd.step()
        sgd.clear_grad()
        rate.step()
    assert abs(w.item() + 1.11) < 1e-6 and abs(sgd.get_lr() - 0.001) < 1e-12
    assert sgd.state_dict()["LR_Scheduler"]["last_epoch"] == 3
