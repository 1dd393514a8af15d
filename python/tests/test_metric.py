"""Metrics in both modes."""

import numpy as np
import pytest

import paddle


def test_accuracy_of_the_best_and_of_the_two_best():
    metric = paddle.metric.Accuracy(topk=(1, 2))
    scores = np.array([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.2, 0.3, 0.5]])
    assert metric.update(metric.compute(scores, np.array([[1], [2], [0]]))) == [1 / 3, 2 / 3]
    metric.update(metric.compute(paddle.to_tensor(scores.astype("float32")), np.array([1, 0, 2])))
    assert metric.accumulate() == [4 / 6, 5 / 6] and metric.name() == ["acc_top1", "acc_top2"]
    metric.reset()
    assert metric.accumulate() == [0, 0]
    assert paddle.metric.Accuracy().update(np.array([[1.], [0.]])) == 0.5


def test_precision_and_recall():
    said, true = np.array([0.9, 0.8, 0.2, 0.6]), np.array([1, 0, 1, 1])
    precision, recall = paddle.metric.Precision(), paddle.metric.Recall()
    for metric in (precision, recall):
        assert metric.accumulate() == 0
        metric.update(said, true)
    assert precision.accumulate() == recall.accumulate() == 2 / 3
    with pytest.raises(ValueError, match="4 predictions for 2 labels"):
        recall.update(said, true[:2])


def test_auc_is_the_share_of_pairs_in_order():
    random = np.random.default_rng(5)
    scores, labels = random.random(300), random.integers(0, 2, 300)
    metric = paddle.metric.Auc()
    metric.update(np.stack([1 - scores[:100], scores[:100]], 1), labels[:100, None])
    metric.update(scores[100:], labels[100:])
    ordered = np.subtract.outer(scores[labels == 1], scores[labels == 0])
    assert metric.accumulate() == pytest.approx((ordered > 0).mean(), abs=2e-3)
    metric.reset()
    assert metric.accumulate() == 0
    with pytest.raises(ValueError, match="expected 0 to 1"):
        metric.update(np.array([1.5]), np.array([1]))


def test_the_function_gives_a_tensor():
    scores = paddle.to_tensor(np.array([[0.1, 0.9], [0.8, 0.2]], "float32"))
    got = paddle.metric.accuracy(scores, paddle.to_tensor(np.array([[1], [1]])))
    assert float(got.numpy().ravel()[0]) == 0.5


def test_the_function_records_in_static_mode():
    from argosy import static
    paddle.enable_static()
    try:
        with static.program_guard(static.Program(), static.Program()):
            scores = static.data("scores", [-1, 2], "float32")
            label = static.data("label", [-1, 1], "int64")
            assert isinstance(paddle.metric.accuracy(scores, label), static.Variable)
    finally:
        paddle.disable_static()
