"""Readers and what is made of them."""

import os
import random
import threading

import numpy as np
import pytest

import paddle
from paddle import reader


def numbers(n, first=0):
    """A reader of n numbers."""
    return lambda: iter(range(first, first + n))


def test_batches_keep_the_rest():
    assert list(paddle.batch(numbers(5), 2)()) == [[0, 1], [2, 3], [4]]
    assert list(paddle.batch(numbers(5), 2, drop_last=True)()) == [[0, 1], [2, 3]]
    with pytest.raises(ValueError, match="batch_size is 0"):
        paddle.batch(numbers(5), 0)


def test_shuffling_stays_within_the_buffer():
    random.seed(3)
    mixed = list(reader.shuffle(numbers(100), 10)())
    assert sorted(mixed) == list(range(100)) and mixed != list(range(100))
    assert all(sorted(mixed[i:i + 10]) == list(range(i, i + 10)) for i in range(0, 100, 10))


def test_readers_are_joined_mapped_and_cut():
    assert list(reader.chain(numbers(2), numbers(2, 5))()) == [0, 1, 5, 6]
    assert list(reader.map_readers(max, numbers(3), numbers(3, 1))()) == [1, 2, 3]
    assert list(reader.firstn(numbers(9), 2)()) == [0, 1]
    assert list(reader.buffered(numbers(9), 3)()) == list(range(9))
    pairs = reader.map_readers(lambda i: (i, -i), numbers(2))
    assert list(reader.compose(numbers(2), pairs)()) == [(0, 0, 0), (1, 1, -1)]
    with pytest.raises(ValueError, match="different numbers of samples"):
        list(reader.compose(numbers(2), numbers(3))())
    assert list(reader.compose(numbers(2), numbers(3), check_alignment=False)()) == [(0, 0), (1, 1)]


def test_a_cached_reader_reads_once():
    reads = []
    cached = reader.cache(lambda: (reads.append(i) or i for i in range(3)))
    assert list(cached()) == list(cached()) == [0, 1, 2] and reads == [0, 1, 2]


@pytest.mark.parametrize("order", [True, False])
def test_mappers_run_in_threads(order):
    threads = set()

    def square(i):
        threads.add(threading.get_ident())
        return i * i

    got = list(reader.xmap_readers(square, numbers(50), 3, 8, order)())
    assert sorted(got) == [i * i for i in range(50)] and threading.get_ident() not in threads
    if order:
        assert got == sorted(got)
    with pytest.raises(ZeroDivisionError):
        list(reader.xmap_readers(lambda i: 1 // i, numbers(5), 2, 4, order)())


@pytest.mark.parametrize("pipe", [True, False])
def test_processes_read_their_readers(pipe):
    def with_process(n):
        return lambda: ((i, os.getpid()) for i in range(n))

    rows = list(reader.multiprocess_reader([with_process(3), with_process(4)], use_pipe=pipe,
                                           queue_size=10)())
    assert sorted(i for i, _ in rows) == [0, 0, 1, 1, 2, 2, 3]
    assert len({process for _, process in rows} - {os.getpid()}) == 2

    def failing():
        yield 1
        raise KeyError("gone")

    with pytest.raises(KeyError, match="gone"):
        list(reader.multiprocess_reader([failing])())


def test_small_data_sets_say_where_they_come_from(capfd, monkeypatch):
    from argosy import samples
    monkeypatch.delenv("ARGOSY_DATA", raising=False)
    samples._housing.cache_clear()
    samples._mnist.cache_clear()
    train, test = paddle.dataset.uci_housing.train(), paddle.dataset.uci_housing.test()
    assert (len(list(train())), len(list(test()))) == (404, 102)
    image, digit = next(paddle.dataset.mnist.test()())
    assert image.shape == (784,) and image.min() >= -1 and image.max() <= 1 and isinstance(digit,
                                                                                           int)
    assert image.min() < -0.5 and np.float32 == image.dtype
    said = capfd.readouterr().err.splitlines()
    assert len(said) == 2 and "generated prices" in said[0] and "generated digits" in said[1]


@pytest.mark.skipif("ARGOSY_DATA" not in os.environ,
                    reason="ARGOSY_DATA names no folder of real data sets")
def test_real_prices_are_those_of_the_book():
    x, y = next(paddle.dataset.uci_housing.train()())
    assert y.tolist() == [24.0]
    np.testing.assert_allclose(x[:3], [-0.0405441, 0.06636364, -0.32356227], rtol=1e-4)
