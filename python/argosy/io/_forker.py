"""Forks the workers of data loaders: python -m argosy.io._forker DESCRIPTOR

A training process has threads, which a fork would tear out of their locks. This process has none:
it is started by exec, gets data sets as pickles and forks the workers. It ends with the process
that started it.
"""

import ctypes
import os
import pickle
import select
import signal
import socket
import sys
import traceback
from typing import Any, Dict, List

from argosy.io._channel import Channel
from argosy.io._tasks import serve

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Answers requests until the other side is gone."""
    for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(ignored, signal.SIG_IGN)  # the training process decides when it is over
    control = socket.socket(fileno=int(sys.argv[1]))
    parent = os.getppid()
    children: Dict[int, int] = {}  # process id: its exit status, None while it runs
    channel = Channel(control)
    while os.getppid() == parent:
        readable, _, _ = select.select([control], [], [], 1.0)
        _reap(children)
        if not readable:
            continue
        try:
            request, arguments = channel.receive()
            answer = _REQUESTS[request](channel, children, *arguments)
            channel.send(answer)
        except (EOFError, OSError):
            break
    for process in children:
        _kill(process, signal.SIGKILL)


def _fork(channel: Channel, children: Dict[int, Any], count: int, environment: Dict[str, str],
          path: List[str], folder: str) -> Any:
    """Forks workers that serve their sockets with the data set of the next message."""
    _, descriptors, _, _ = socket.recv_fds(channel.socket, 1, count)
    ends = [socket.socket(fileno=descriptor) for descriptor in descriptors]
    try:
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = path
        payload = channel.receive()
        try:
            os.chdir(folder)
            job = pickle.loads(payload[0], buffers=payload[1:])
        except BaseException:
            return ("error", traceback.format_exc())
        processes = []
        for number in range(count):
            process = os.fork()
            if process == 0:
                _work(channel, ends, number, job)
            children[process] = None
            processes.append(process)
        return ("processes", processes)
    finally:
        for end in ends:
            end.close()


def _work(channel: Channel, ends: List[socket.socket], number: int, job: Any) -> None:
    """The life of a worker."""
    forker = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != forker:
        os._exit(1)
    channel.close()
    for other, end in enumerate(ends):
        if other != number:
            end.close()
    status = 1
    try:
        serve(Channel(ends[number], job["shared_memory"]), number, job)
        status = 0
    except (EOFError, BrokenPipeError, ConnectionResetError):
        status = 0  # nobody wants more batches
    except BaseException:
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except OSError:
                pass
        os._exit(status)


def _status(channel: Channel, children: Dict[int, Any], process: int) -> Any:
    """How a worker ended whose socket is closed; it is waited for."""
    if children.get(process) is None:
        children[process] = os.waitpid(process, 0)[1]
    return children.pop(process)


def _end(channel: Channel, children: Dict[int, Any], processes: List[int]) -> Any:
    """Ends workers that are not needed any more."""
    for process in processes:
        if children.get(process, 0) is None:
            _kill(process, signal.SIGTERM)
    return None


def _kill(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        pass


def _reap(children: Dict[int, Any]) -> None:
    for process, status in list(children.items()):
        if status is None:
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                children[process] = status


_REQUESTS = {"fork": _fork, "status": _status, "end": _end}

if __name__ == "__main__":
    main()
