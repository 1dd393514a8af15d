"""The models whose losses are compared with Paddle's: `python models.py CASE` prints them, a list in JSON; without CASE,
the cases.

Runs on argosy's paddle and on Paddle 2.6.2 alike. First values and batches are drawn by NumPy alone, by name."""
import json
import sys
import zlib

import numpy as np
import paddle
import paddle.nn.functional as F

STEPS = 20
ROWS, DIM, SLOTS, NUMBERS, HIDDEN = 1000, 10, 26, 13, (400, 400, 400)
CTR_BATCH, IMAGE_BATCH = 100, 64
TABLE = "SparseFeatFactors"


def draw(*words):
    """A generator of random numbers that only these words decide."""
    return np.random.RandomState(zlib.crc32(repr(words).encode()))


def first_value(name, shape):
    """Weights within 1 / sqrt(inputs), rows within 0.1, and biases that are not all the same."""
    spread = 1 / np.sqrt(shape[0]) if len(shape) == 2 and shape[0] != ROWS else 0.1
    return draw("value", name).uniform(-spread, spread, shape).astype("float32")


def clicks(step):
    """Ids of a power law [batch, slots], numbers, and labels that follow the first id."""
    random = draw("instances", step)
    ids = random.zipf(1.2, (CTR_BATCH, SLOTS)) % ROWS
    numbers = random.uniform(0, 1, (CTR_BATCH, NUMBERS)).astype("float32")
    clicked = (ids[:, :1] + random.randint(0, 2, (CTR_BATCH, 1))) % 3 == 0
    return ids.astype("int64"), numbers, clicked.astype("int64")


def images(step):
    """Pixels [batch, 28, 28] in 0..1 around one picture for each of ten labels."""
    random = draw("images", step)
    labels = random.randint(0, 10, (IMAGE_BATCH, 1))
    pictures = draw("pictures").uniform(0, 1, (10, 28, 28))
    noise = random.uniform(0, 1, (IMAGE_BATCH, 28, 28))
    return ((pictures[labels[:, 0]] + 4 * noise) / 5).astype("float32"), labels.astype("int64")


def optimizer_of(rule, rate, parameters=None):
    """Adam as the CTR models use it, or SGD."""
    if rule == "sgd":
        return paddle.optimizer.SGD(learning_rate=rate, parameters=parameters)
    return paddle.optimizer.Adam(learning_rate=rate, lazy_mode=True, parameters=parameters)


def ctr_program():
    """Seed 000: 26 slots of one table, three layers, a softmax of two."""
    dense = paddle.static.data("dense_input", [None, NUMBERS], "float32")
    slots = [paddle.static.data("C%d" % i, [None, 1], "int64") for i in range(1, SLOTS + 1)]
    label = paddle.static.data("label", [None, 1], "int64")
    rows = [paddle.reshape(
        paddle.static.nn.embedding(ids, size=[ROWS, DIM], is_sparse=True,
                                   param_attr=paddle.ParamAttr(name=TABLE)), [-1, DIM])
            for ids in slots]
    x = paddle.concat(rows + [dense], axis=1)
    for size in HIDDEN:
        x = paddle.static.nn.fc(x, size, activation="relu")
    predict = paddle.static.nn.fc(x, 2, activation="softmax")
    return paddle.mean(F.cross_entropy(predict, label, use_softmax=False))


def mnist_program():
    """Seed 002."""
    x = paddle.static.data(name="x", shape=[IMAGE_BATCH, 28, 28], dtype="float32")
    y = paddle.static.data(name="y", shape=[IMAGE_BATCH, 1], dtype="int64")
    x_flatten = paddle.reshape(x, [IMAGE_BATCH, 784])
    fc_1 = paddle.static.nn.fc(x=x_flatten, size=128, activation="tanh")
    fc_2 = paddle.static.nn.fc(x=fc_1, size=128, activation="tanh")
    prediction = paddle.static.nn.fc(x=[fc_2], size=10, activation="softmax")
    cost = F.cross_entropy(prediction, y, use_softmax=False)
    return paddle.mean(x=cost)


def ctr_feed(step):
    """A batch by the names of ctr_program."""
    ids, numbers, label = clicks(step)
    feed = {"C%d" % (i + 1): ids[:, i:i + 1] for i in range(SLOTS)}
    return dict(feed, dense_input=numbers, label=label)


def mnist_feed(step):
    """A batch by the names of mnist_program."""
    x, y = images(step)
    return {"x": x, "y": y}


def static_losses(loss, feed_of, rule, rate, table=None):
    """Of a recorded program: trained by exe.run."""
    optimizer_of(rule, rate).minimize(loss)
    place = paddle.CPUPlace()
    exe = paddle.static.Executor(place)
    exe.run(paddle.static.default_startup_program())
    shapes = {p.name: list(p.shape) for p in paddle.static.default_main_program().all_parameters()}
    shapes.update({table: [ROWS, DIM]} if table else {})
    for name, shape in shapes.items():
        value = first_value(name, shape)
        paddle.static.global_scope().find_var(name).get_tensor().set(value, place)
    return [float(exe.run(feed=feed_of(step), fetch_list=[loss])[0].reshape([-1])[0])
            for step in range(STEPS)]


class CtrNet(paddle.nn.Layer):
    """Seed 000's network as a layer."""

    def __init__(self):
        super().__init__()
        self.table = paddle.nn.Embedding(ROWS, DIM, sparse=True)
        sizes = (SLOTS * DIM + NUMBERS,) + HIDDEN + (2,)
        self.layers = paddle.nn.LayerList([paddle.nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])

    def forward(self, ids, numbers):
        rows = self.table(ids).reshape([-1, SLOTS * DIM])
        x = paddle.concat([rows, numbers], axis=1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x))
        return self.layers[-1](x)


class MnistNet(paddle.nn.Layer):
    """Seed 002's network as a layer."""

    def __init__(self):
        super().__init__()
        self.fc_1 = paddle.nn.Linear(784, 128)
        self.fc_2 = paddle.nn.Linear(128, 128)
        self.out = paddle.nn.Linear(128, 10)

    def forward(self, x):
        x = paddle.tanh(self.fc_1(paddle.flatten(x, start_axis=1)))
        return self.out(paddle.tanh(self.fc_2(x)))


def dynamic_losses(model, batch_of, rule, rate):
    """Of a layer: trained by backward() and step()."""
    for name, parameter in model.named_parameters():
        parameter.set_value(first_value(name, list(parameter.shape)))
    optimizer = optimizer_of(rule, rate, model.parameters())
    losses = []
    for step in range(STEPS):
        *inputs, label = (paddle.to_tensor(array) for array in batch_of(step))
        loss = F.cross_entropy(model(*inputs), label)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses


def in_static_mode(program, *how, **more):
    """The losses of a program that is recorded now."""
    paddle.enable_static()
    return static_losses(program(), *how, **more)


CASES = {
    "ctr_static_adam": lambda: in_static_mode(ctr_program, ctr_feed, "adam", 1e-3, table=TABLE),
    "ctr_static_sgd": lambda: in_static_mode(ctr_program, ctr_feed, "sgd", 0.1, table=TABLE),
    "mnist_static_adam": lambda: in_static_mode(mnist_program, mnist_feed, "adam", 0.01),
    "ctr_dynamic_adam": lambda: dynamic_losses(CtrNet(), clicks, "adam", 1e-3),
    "ctr_dynamic_sgd": lambda: dynamic_losses(CtrNet(), clicks, "sgd", 0.1),
    "mnist_dynamic_adam": lambda: dynamic_losses(MnistNet(), images, "adam", 0.01),
}

if __name__ == "__main__":
    print(json.dumps(CASES[sys.argv[1]]()) if len(sys.argv) > 1 else "\n".join(CASES))
