"""Steps per second of exe.run on the MNIST network of the documents (784-128-128-10, tanh, Adam), batch 64, one thread,
images in memory: argosy's paddle against Paddle 2.6.2, rounds of both in turn.

usage: PADDLE_PYTHON=PYTHON build/venv/bin/python bench/python/static_mnist.py [ROUNDS]"""
import sys
import time

BATCH, BATCHES, SECONDS = 64, 128, 3.0


def work() -> float:
    """Runs on either paddle."""
    import numpy as np
    import paddle

    paddle.enable_static()
    x = paddle.static.data(name="x", shape=[BATCH, 28, 28], dtype="float32")
    y = paddle.static.data(name="y", shape=[BATCH, 1], dtype="int64")
    fc_1 = paddle.static.nn.fc(paddle.reshape(x, [BATCH, 784]), size=128, activation="tanh")
    fc_2 = paddle.static.nn.fc(fc_1, size=128, activation="tanh")
    prediction = paddle.static.nn.fc(x=[fc_2], size=10, activation="softmax")
    cost = paddle.nn.functional.cross_entropy(prediction, y, use_softmax=False, reduction="none")
    acc = paddle.metric.accuracy(input=prediction, label=y, k=1)
    loss = paddle.mean(cost)
    paddle.optimizer.Adam(learning_rate=0.01).minimize(loss)
    exe = paddle.static.Executor(paddle.CPUPlace())
    exe.run(paddle.static.default_startup_program())
    random = np.random.RandomState(1)
    images = random.rand(BATCHES, BATCH, 28, 28).astype("float32")
    labels = random.randint(0, 10, (BATCHES, BATCH, 1)).astype("int64")

    def one_pass():
        for i in range(BATCHES):
            exe.run(paddle.static.default_main_program(), feed={"x": images[i], "y": labels[i]},
                    fetch_list=[loss.name, acc.name])

    one_pass()
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        one_pass()
        steps += BATCHES
    return steps / (time.perf_counter() - start)


def main():
    if sys.argv[1:] == ["work"]:
        print(work())
        return
    from turns import compare, last_number, paddle_python

    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    peer = paddle_python()
    others = {"paddle": lambda: last_number([peer, __file__, "work"], ours=False)} if peer else {}
    compare(rounds, lambda: last_number([sys.executable, __file__, "work"], ours=True), others)


main()
