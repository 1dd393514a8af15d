"""The training process's side of a loader's workers."""

import atexit
import collections
import itertools
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Deque, Dict, Iterator, List, Optional

import numpy as np

from argosy.io._channel import Channel


class _Forker:
    """The process that forks workers, one for each training process."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path for path in sys.path
                                                                  if path))
        with theirs:
            command = [sys.executable, "-m", "argosy.io._forker", str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()], env=environment,
                                             stdin=subprocess.DEVNULL)
        self._channel = Channel(ours)
        self._lock = threading.Lock()

    def fork(self, job: Dict[str, Any], count: int) -> "tuple[List[Channel], List[int]]":
        """Starts workers: the channels to them and their process ids."""
        import cloudpickle
        buffers: List[Any] = []
        payload = cloudpickle.dumps(job, protocol=5, buffer_callback=buffers.append)
        pairs = [socket.socketpair() for _ in range(count)]
        try:
            with self._lock:
                self._channel.send(("fork", (count, dict(os.environ), list(sys.path), os.getcwd())))
                socket.send_fds(self._channel.socket, [b"w"], [theirs.fileno() for _,
                                                               theirs in pairs])
                self._channel.send([payload, *buffers])
                kind, answer = self._answer()
        finally:
            for _, theirs in pairs:
                theirs.close()
        if kind == "error":
            raise RuntimeError(f"the data set cannot be read in another process:\n{answer}")
        return [Channel(ours, job["shared_memory"]) for ours, _ in pairs], answer

    def status(self, process: int) -> int:
        """How a worker ended, as os.waitpid says it."""
        with self._lock:
            self._channel.send(("status", (process,)))
            return self._answer()

    def end(self, processes: List[int]) -> None:
        """Ends workers at once, or lets them see their closed sockets if somebody is talking."""
        if self._lock.acquire(blocking=False):  # garbage collection may come here at any moment
            try:
                self._channel.send(("end", (processes,)))
                self._answer()
            finally:
                self._lock.release()

    def close(self) -> None:
        """Ends the process and all workers."""
        self._channel.close()
        self._process.wait()

    def alive(self) -> bool:
        """False where somebody has killed it."""
        return self._process.poll() is None

    def _answer(self) -> Any:
        try:
            return self._channel.receive()
        except EOFError:
            raise RuntimeError("the process that forks DataLoader workers (process "
                               f"{self._process.pid}) is gone, exit code "
                               f"{self._process.wait()}") from None


_forkers: Dict[int, _Forker] = {}  # by process id: a forked child starts its own
_forkers_lock = threading.Lock()


def _forker() -> _Forker:
    with _forkers_lock:
        found = _forkers.get(os.getpid())
        if found is None or not found.alive():
            found = _forkers[os.getpid()] = _Forker()
        return found


@atexit.register
def _close_own_forker() -> None:
    own = _forkers.pop(os.getpid(), None)
    if own is not None:
        own.close()


class _WorkerTraceback(Exception):
    """Shown above the exception of a worker: where that happened."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Workers:
    """A loader's worker processes."""

    def __init__(self, job: Dict[str, Any], count: int, ahead: int, timeout: float):
        self._forker = _forker()
        job = dict(job, seed=int(np.random.randint(0, 1 << 31)), workers=count)
        self._channels, self._processes = self._forker.fork(job, count)
        self._ahead = ahead  # batches that each worker is asked for in advance
        self._timeout = timeout
        self._owner = os.getpid()
        self._poll = select.poll()
        for channel in self._channels:
            self._poll.register(channel.socket, 0)  # only its end is reported

    def batches(self, tasks: Optional[Iterator[Any]], keep: bool) -> Iterator[Any]:
        """One pass: the batches of the tasks in order, or what iterable data sets give in turn.

        keep: another pass may follow, also where this one is broken off.
        """
        tasks = itertools.repeat(None) if tasks is None else tasks
        for number in range(len(self._channels)):
            self._send(number, ("start",))
        asked: Deque[int] = collections.deque()
        for number in itertools.islice(itertools.cycle(range(len(self._channels))),
                                       self._ahead * len(self._channels)):
            self._ask(number, tasks, asked)
        try:
            while asked:
                number = asked.popleft()
                kind, *answer = self._receive(number)
                if kind == "error":
                    self._raise(number, *answer)
                if kind == "batch":
                    self._ask(number, tasks, asked)
                    yield answer[0]
        except GeneratorExit:
            for number in asked if keep else ():  # the next pass must not see these
                self._receive(number)
            raise

    def _ask(self, number: int, tasks: Iterator[Any], asked: Deque[int]) -> None:
        for task in tasks:
            self._send(number, ("batch", task))
            asked.append(number)
            return

    def close(self) -> None:
        """Ends the workers."""
        if os.getpid() != self._owner or not self._channels:
            return
        for channel in self._channels:
            channel.close()
        self._channels = []
        try:
            self._forker.end(self._processes)
        except (OSError, RuntimeError):
            pass  # it is gone, and the workers with it

    __del__ = close

    def _send(self, number: int, request: Any) -> None:
        try:
            self._channels[number].send(request)
        except (BrokenPipeError, ConnectionResetError):
            self._name_the_dead(number)

    def _receive(self, number: int) -> Any:
        channel = self._channels[number]
        deadline = time.monotonic() + self._timeout if self._timeout else None
        self._poll.modify(channel.socket, select.POLLIN)
        try:
            while True:
                left = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
                events = dict(self._poll.poll(left))
                if events.get(channel.socket.fileno(), 0) & select.POLLIN:
                    return channel.receive()
                for other, candidate in enumerate(self._channels):
                    if candidate.socket.fileno() in events:
                        self._name_the_dead(other)
                if deadline is not None and not events:
                    raise RuntimeError(f"DataLoader worker {number} (process "
                                       f"{self._processes[number]}) gave no batch within "
                                       f"timeout={self._timeout} s")
        except (EOFError, ConnectionResetError):
            self._name_the_dead(number)
        finally:
            self._poll.modify(channel.socket, 0)

    def _name_the_dead(self, number: int) -> None:
        status = self._forker.status(self._processes[number])
        code = os.waitstatus_to_exitcode(status)
        how = f"has exited with code {code}"
        if code < 0:
            how = f"was killed by signal {-code} ({signal.Signals(-code).name})"
        raise RuntimeError(f"DataLoader worker {number} (process {self._processes[number]}) {how}")

    def _raise(self, number: int, pickled: Optional[bytes], text: str) -> None:
        where = _WorkerTraceback(f"in DataLoader worker {number} (process "
                                 f"{self._processes[number]}):\n{text}")
        if pickled is None:
            raise RuntimeError(f"DataLoader worker {number} failed:\n{text}") from where
        raise pickle.loads(pickled) from where
