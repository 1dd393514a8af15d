"""Data sets, samplers and loaders in one process."""

import threading

import numpy as np
import pytest

from argosy import _mode, io


@pytest.fixture(autouse=True)
def static_mode():
    """Batches are arrays then."""
    _mode.enable_static()
    yield
    _mode.disable_static()


class Squares(io.Dataset):
    """(i, i * i) for i below n."""

    def __init__(self, n):
        self.n = n

    def __getitem__(self, index):
        return np.full([2], index, "float32"), np.int64(index * index)

    def __len__(self):
        return self.n


class Counting(io.IterableDataset):
    """0 to n - 1, one by one."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        return iter(np.arange(self.n))


def firsts(loader):
    """The first field of all samples, flat."""
    return np.concatenate([batch[0][:, 0] for batch in loader]).astype(int).tolist()


@pytest.mark.parametrize("buffered", [False, True])
def test_batches_are_stacked_in_order_and_the_rest_comes_last(buffered):
    loader = io.DataLoader(Squares(10), batch_size=4, use_buffer_reader=buffered)
    batches = list(loader)
    assert len(loader) == 3 and [len(batch[0]) for batch in batches] == [4, 4, 2]
    assert batches[1][0].shape == (4, 2) and batches[1][1].tolist() == [16, 25, 36, 49]
    assert batches[0][0].dtype == np.float32 and batches[0][1].dtype == np.int64
    assert len(list(io.DataLoader(Squares(10), batch_size=4, drop_last=True))) == 2


def test_a_loader_can_be_called_and_gives_every_sample_in_each_pass():
    loader = io.DataLoader(Squares(20), batch_size=3, shuffle=True)
    np.random.seed(1)
    one, two = firsts(loader()), firsts(loader())
    assert sorted(one) == sorted(two) == list(range(20)) and one != two
    np.random.seed(1)
    assert firsts(loader) == one


def test_feed_dicts_are_named_by_the_feed_list():
    class Named:
        name = "y"

    loader = io.DataLoader(Squares(4), feed_list=["x", Named()], batch_size=2, return_list=False,
                           places="cpu")
    batch = next(iter(loader))
    assert sorted(batch) == ["x", "y"] and batch["y"].tolist() == [0, 1]
    loader = io.DataLoader(Squares(4), feed_list=["x", "y"], batch_size=2, return_list=False,
                           places=["cpu"])
    assert [sorted(feed) for feed in next(iter(loader))] == [["x", "y"]]
    loader = io.DataLoader(Squares(4), feed_list=["x"], return_list=False)
    with pytest.raises(ValueError, match="2 fields, but the feed_list has 1 names: x"):
        next(iter(loader))


def test_an_iterable_data_set_is_read_to_its_end():
    loader = io.DataLoader(Counting(7), batch_size=3)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    assert [int(sample) for sample in io.DataLoader(Counting(3), batch_size=None)] == [0, 1, 2]
    chained = io.ChainDataset([Counting(2), Counting(1)])
    assert [batch.tolist() for batch in io.DataLoader(chained, batch_size=3)] == [[0, 1, 0]]
    with pytest.raises(TypeError, match="no length"):
        len(loader)


def test_arrays_in_memory_take_a_short_cut_with_the_same_result():
    x, y = np.arange(20.).reshape(10, 2), np.arange(10)
    short = list(io.DataLoader(io.TensorDataset([x, y]), batch_size=4))
    subset = io.Subset(io.TensorDataset([x, y]), list(range(10)))
    by_samples = list(io.DataLoader(io.ComposeDataset([subset]), batch_size=4))
    for batches in (by_samples, list(io.DataLoader(subset, batch_size=4))):
        for a, b in zip(short, batches):
            assert all(np.array_equal(p, q) and p.dtype == q.dtype for p, q in zip(a, b))


def test_a_subclass_that_overrides_getitem_is_asked_for_its_samples():
    class Shifted(io.TensorDataset):
        def __getitem__(self, index):
            return (super().__getitem__(index)[0] + 100,)

    batch = next(iter(io.DataLoader(Shifted([np.arange(4.)]), batch_size=4)))
    assert batch[0].tolist() == [100, 101, 102, 103]


def test_an_exception_of_a_data_set_is_raised_where_batches_are_taken():
    class Bad(Squares):
        def __getitem__(self, index):
            if index == 5:
                raise KeyError("sample five")
            return super().__getitem__(index)

    got = []
    with pytest.raises(KeyError, match="sample five"):
        for batch in io.DataLoader(Bad(10), batch_size=2):
            got.append(batch)
    assert len(got) == 2


def test_shapes_that_do_not_fit_are_named():
    class Ragged(Squares):
        def __getitem__(self, index):
            return np.zeros([index + 1])

    with pytest.raises(ValueError,
                       match=r"sample 1 of the batch has shape \[2\], the first has \[1\]"):
        next(iter(io.DataLoader(Ragged(4), batch_size=2)))


def test_a_loader_that_is_left_early_ends_its_thread():
    before = threading.active_count()
    for _ in range(3):
        for _batch in io.DataLoader(Squares(1000), batch_size=1):
            break
    for thread in threading.enumerate():
        if thread.name == "argosy-prefetch":
            thread.join(20)
    assert threading.active_count() == before


def test_collate_functions_and_nested_samples():
    class Dicts(Squares):
        def __getitem__(self, index):
            return {"a": index, "b": [np.ones(2), "text"], "c": 0.5}

    batch = next(iter(io.DataLoader(Dicts(2), batch_size=2)))
    assert batch["a"].tolist() == [0, 1] and batch["b"][0].shape == (2, 2)
    assert batch["b"][1] == ["text", "text"]

    def total(samples):
        return sum(int(sample[1]) for sample in samples)

    loader = io.DataLoader(Squares(4), batch_size=2, collate_fn=total)
    assert list(loader) == [1, 13]


def test_samplers():
    data = Squares(10)
    assert list(io.SequenceSampler(data)) == list(range(10))
    assert sorted(io.RandomSampler(data)) == list(range(10))
    assert len(list(io.RandomSampler(data, replacement=True, num_samples=30))) == 30
    assert set(io.WeightedRandomSampler([0, 1, 0, 2], 50)) == {1, 3}
    assert sorted(io.SubsetRandomSampler([5, 7])) == [5, 7]
    batches = io.BatchSampler(sampler=io.SequenceSampler(data), batch_size=3, drop_last=True)
    assert list(batches) == [[0, 1, 2], [3, 4, 5], [6, 7, 8]] and len(batches) == 3
    assert firsts(io.DataLoader(data, batch_sampler=batches)) == list(range(9))


def test_ranks_share_the_batches_of_a_distributed_sampler():
    parts = []
    for rank in range(3):
        sampler = io.DistributedBatchSampler(Squares(20), 4, num_replicas=3, rank=rank,
                                             shuffle=True)
        sampler.set_epoch(7)
        batches = list(sampler)
        assert len(batches) == len(sampler) == 2
        parts.append([index for batch in batches for index in batch])
    assert [len(part) for part in parts] == [7, 7, 7]
    assert set(sum(parts, [])) == set(range(20))


def test_ranks_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "2")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "1")
    assert list(io.DistributedBatchSampler(Squares(8), 2)) == [[2, 3], [6, 7]]
    plain = io.DataLoader(Squares(8), batch_size=4)  # it is not split
    assert firsts(plain) == list(range(8))
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    with pytest.raises(ValueError, match="rank is 2 of 2"):
        io.DistributedBatchSampler(Squares(8), 2)


def test_data_sets_are_split_and_joined():
    parts = io.random_split(Squares(10), [7, 3])
    squares = [int(sample[1]) for part in parts for sample in part_samples(part)]
    assert sorted(squares) == [i * i for i in range(10)]
    assert [len(part) for part in io.random_split(Squares(10), [0.75, 0.25])] == [8, 2]
    with pytest.raises(ValueError, match="sum up to 8, expected the data set's 10"):
        io.random_split(Squares(10), [5, 3])
    joined = io.ConcatDataset([Squares(3), Squares(2)])
    assert [int(sample[1]) for sample in part_samples(joined)] == [0, 1, 4, 0, 1]
    with pytest.raises(IndexError):
        joined[5]


def part_samples(dataset):
    """All samples by index."""
    return [dataset[i] for i in range(len(dataset))]


def test_arguments_without_effect_are_refused():
    with pytest.raises(ValueError, match="shuffle=True cannot be had"):
        io.DataLoader(Counting(3), shuffle=True)
    with pytest.raises(ValueError, match="must not be given too"):
        io.DataLoader(Squares(3), batch_sampler=io.BatchSampler(Squares(3)), batch_size=2)
    with pytest.raises(ValueError, match="needs a feed_list"):
        io.DataLoader(Squares(3), return_list=False)
    with pytest.raises(ValueError, match="no effect with num_workers=0"):
        io.DataLoader(Squares(3), persistent_workers=True)


def test_readers_of_samples_lists_and_batches():
    class X:
        name, dtype, shape = "x", "float32", [-1, 2]

    class Y:
        name, dtype, shape = "y", "int64", [-1, 1]

    def samples():
        return (([i, i], i) for i in range(5))

    loader = io.DataLoader.from_generator(feed_list=[X, Y], capacity=4)
    batches = list(loader.set_sample_generator(samples, batch_size=2, places="cpu"))
    assert len(batches) == 2 and batches[1]["x"].tolist() == [[2, 2], [3, 3]]
    assert batches[0]["x"].dtype == np.float32 and batches[0]["y"].tolist() == [[0], [1]]
    assert len(list(loader.set_sample_generator(samples, batch_size=2, drop_last=False)())) == 3
    loader.set_sample_list_generator(lambda: iter([[([1, 2], 3)]]), places=["cpu"])
    assert [feed[0]["y"].tolist() for feed in loader] == [[[3]]]
    loader.set_batch_generator(lambda: iter([(np.ones([3, 2]), np.zeros([3, 1]))]))
    assert next(iter(loader))["x"].shape == (3, 2)
    with pytest.raises(ValueError, match="samples of 'x' have shape"):
        next(iter(loader.set_sample_generator(lambda: iter([([1, 2, 3], 1)] * 2), batch_size=2)))


def test_batches_are_tensors_in_dynamic_mode():
    import argosy
    _mode.disable_static()
    x = np.arange(4.).reshape(4, 1)
    batch = next(iter(io.DataLoader(io.TensorDataset([x]), batch_size=2)))
    assert isinstance(batch[0], argosy.Tensor) and batch[0].numpy().tolist() == [[0], [1]]
    sample = next(iter(io.DataLoader(io.TensorDataset([x]), batch_size=None)))
    sample[0].numpy()[:] = 7  # a copy, not the data set's own row
    assert x[0, 0] == 0
