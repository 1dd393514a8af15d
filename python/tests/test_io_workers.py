"""Loaders with worker processes: what they give, and what happens when one of them dies."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

from argosy import _mode, io

DEADLINE = 60  # seconds in which anything must have happened


@pytest.fixture(autouse=True)
def static_mode():
    """Batches are arrays then."""
    _mode.enable_static()
    yield
    _mode.disable_static()


class Rows(io.Dataset):
    """Rows of `width` times the index, and the process that made them."""

    def __init__(self, n, width=2):
        self.n, self.width = n, width

    def __getitem__(self, index):
        return np.full([self.width], index, "float32"), np.int64(os.getpid())

    def __len__(self):
        return self.n


class Split(io.IterableDataset):
    """Each worker gives its own share of the numbers below n."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = io.get_worker_info()
        return iter(np.arange(self.n)[info.id::info.num_workers])


def alive(process):
    """Whether a process runs; a zombie does not."""
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().rsplit(")",
                                                                        1)[1].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


def wait_for(condition):
    """Waits for something that must come true."""
    end = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


@pytest.mark.parametrize("width", [2, 100_000])  # through the socket, through shared memory
@pytest.mark.parametrize("shared", [True, False])
def test_batches_of_workers_come_in_order_from_other_processes(width, shared):
    loader = io.DataLoader(Rows(10, width), batch_size=2, num_workers=2, use_shared_memory=shared)
    batches = list(loader)
    assert [int(batch[0][1, -1]) for batch in batches] == [1, 3, 5, 7, 9]
    makers = {int(process) for batch in batches for process in batch[1]}
    assert len(makers) == 2 and os.getpid() not in makers
    batches[0][0][:] = 1  # they are the caller's own
    wait_for(lambda: not any(map(alive, makers)))


def test_iterable_data_sets_are_read_by_all_workers():
    loader = io.DataLoader(Split(10), batch_size=2, num_workers=3)
    assert sorted(np.concatenate(list(loader)).tolist()) == list(range(10))
    assert io.get_worker_info() is None


def test_persistent_workers_are_the_same_in_each_pass():
    loader = io.DataLoader(Rows(8), batch_size=1, num_workers=2, persistent_workers=True)
    passes = [{int(batch[1][0]) for batch in loader} for _ in range(2)]
    assert passes[0] == passes[1] and len(passes[0]) == 2
    for batch in loader:
        assert batch[0][0, 0] == 0
        break
    assert [int(batch[0][0, 0]) for batch in loader] == list(range(8))


def test_what_the_test_defines_travels_by_value():
    class Local(Rows):
        def __getitem__(self, index):
            return np.float32(index) * factor, np.random.rand(), io.get_worker_info().id

    factor = 3
    np.random.seed(0)
    loader = io.DataLoader(Local(4), num_workers=2, batch_size=2,
                           worker_init_fn=lambda number: os.environ.update(WORKER=str(number)),
                           collate_fn=lambda rows: [np.array(column) for column in zip(*rows)]
                           + [os.environ["WORKER"]])
    first, second = loader
    assert first[0].tolist() == [0, 3] and second[0].tolist() == [6, 9]
    assert first[3] == "0" and second[3] == "1"
    assert first[1][0] != second[1][0]  # workers have random numbers of their own


def test_an_exception_of_a_worker_has_its_traceback():
    class Bad(Rows):
        def __getitem__(self, index):
            if index == 3:
                raise KeyError("no such row")
            return super().__getitem__(index)

    with pytest.raises(KeyError, match="no such row") as caught:
        list(io.DataLoader(Bad(10), num_workers=2))
    assert "DataLoader worker 1" in str(caught.value.__cause__)
    assert "__getitem__" in str(caught.value.__cause__)
    assert "test_io_workers.py" in str(caught.value.__cause__)


def test_a_killed_worker_is_noticed_and_named():
    class Stuck(Rows):
        def __getitem__(self, index):
            if index == 1:
                time.sleep(10 * DEADLINE)
            return super().__getitem__(index)

    batches = iter(io.DataLoader(Stuck(6), num_workers=2, use_buffer_reader=False))
    first = next(batches)
    victim = int(first[1][0])  # worker 0, while worker 1 is the one that is waited for
    os.kill(victim, signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(RuntimeError,
                       match=rf"DataLoader worker 0 \(process {victim}\) was killed by signal 9"):
        list(batches)
    assert time.monotonic() - begin < DEADLINE


def test_a_worker_that_exits_is_named():
    class Leaving(Rows):
        def __getitem__(self, index):
            os._exit(3)

    with pytest.raises(RuntimeError, match="DataLoader worker 0 .* has exited with code 3"):
        list(io.DataLoader(Leaving(2), num_workers=1))


def test_a_slow_worker_is_named_after_the_timeout():
    class Slow(Rows):
        def __getitem__(self, index):
            time.sleep(10 * DEADLINE)

    with pytest.raises(RuntimeError, match="worker 0 .* gave no batch within timeout=0.2 s"):
        list(io.DataLoader(Slow(2), num_workers=1, timeout=0.2))


def test_nothing_is_left_when_the_training_process_is_killed(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent("""
        import os, sys, time
        import numpy as np
        from argosy import _mode, io
        _mode.enable_static()

        class Rows(io.Dataset):
            def __getitem__(self, index):
                if index > 3:
                    time.sleep(600)
                return np.int64(os.getpid()), np.int64(os.getppid())
            def __len__(self):
                return 100

        for step, batch in enumerate(io.DataLoader(Rows(), num_workers=2)):
            print(int(batch[0][0]), int(batch[1][0]), flush=True)
    """))
    train = subprocess.Popen([sys.executable, "train.py"], cwd=tmp_path, stdout=subprocess.PIPE,
                             text=True)
    processes = {int(word) for _ in range(4) for word in train.stdout.readline().split()}
    assert len(processes) == 3 and all(map(alive, processes))  # two workers and who forked them
    train.send_signal(signal.SIGKILL)
    train.wait()
    wait_for(lambda: not any(map(alive, processes)))
    train.stdout.close()


def test_a_script_ends_with_its_last_line_while_workers_still_read(tmp_path):
    (tmp_path / "train.py").write_text(textwrap.dedent("""
        import numpy as np
        from argosy import _mode, io
        _mode.enable_static()

        class Rows(io.Dataset):
            def __getitem__(self, index):
                return np.zeros(100_000)
            def __len__(self):
                return 10_000

        batches = iter(io.DataLoader(Rows(), num_workers=2))
        print(next(batches).shape)
    """))
    done = subprocess.run([sys.executable, "train.py"], cwd=tmp_path, timeout=DEADLINE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0 and done.stdout == "(1, 100000)\n" and done.stderr == ""
