"""Records what Paddle 2.6.2 does to some weights with lamb and lars, with and without weight decay.

usage: PYTHON record.py, with a Python that has paddlepaddle 2.6.2, in this folder."""
import numpy as np
import paddle
from paddle.incubate.optimizer import LarsMomentumOptimizer

ELEMENTS, STEPS, RATE = 19, 20, 0.05


def first_weight(i):
    return ((i * 53) % 97 - 48) / 32


def gradient(i, t):
    return ((i * 37 + t * 101) % 211 - 105) / 64


def record(name, rule, make):
    first = np.array([first_weight(i) for i in range(ELEMENTS)], "float32")
    weight = paddle.create_parameter([ELEMENTS], "float32", name=name,
                                     default_initializer=paddle.nn.initializer.Assign(first))
    optimizer = make([weight])
    lines = [f"rule={rule} rate={RATE} elements={ELEMENTS} steps={STEPS}"]
    for t in range(1, STEPS + 1):
        slope = paddle.to_tensor(np.array([gradient(i, t) for i in range(ELEMENTS)], "float32"))
        (weight * slope).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        lines.append(" ".join(f"{value:.9g}" for value in weight.numpy()))
    with open(f"{name}.txt", "w", encoding="ascii") as out:
        out.write("\n".join(lines) + "\n")


def lamb(exclude):
    return lambda parameters: paddle.optimizer.Lamb(
        RATE, lamb_weight_decay=0.02, parameters=parameters,
        exclude_from_weight_decay_fn=(lambda parameter: True) if exclude else None)


def lars(exclude):
    return lambda parameters: LarsMomentumOptimizer(
        RATE, 0.9, lars_coeff=0.1, lars_weight_decay=0.01, epsilon=0.001, parameter_list=parameters,
        exclude_from_weight_decay=["lars"] if exclude else None)


paddle.set_device("cpu")
record("lamb", "lamb(epsilon=1e-6,weight_decay=0.02)", lamb(exclude=False))
record("lamb_excluded", "lamb(epsilon=1e-6,weight_decay=0)", lamb(exclude=True))
record("lars", "lars(mu=0.9,coeff=0.1,weight_decay=0.01,epsilon=0.001)", lars(exclude=False))
record("lars_excluded", "lars(mu=0.9,coeff=0.1,weight_decay=0,epsilon=0.001)", lars(exclude=True))
