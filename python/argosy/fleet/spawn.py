"""Ranks as processes of this one, for scripts without a launcher."""

import atexit
import os
import pickle
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from argosy import _core
from argosy.places import device_count

_CHILD = "from argosy.fleet.spawn import _child; _child()"
_PERIOD = 0.05  # seconds between two looks at the processes


class Ranks:
    """The processes that spawn has started."""

    def __init__(self, processes: List[subprocess.Popen], folder: Any):
        self.processes, self._folder = processes, folder

    def join(self, timeout: Optional[float] = None) -> bool:
        """Waits for all; False if the time is over before. One that fails ends the others, and is
        raised here."""
        end = None if timeout is None else time.monotonic() + timeout
        while any(process.poll() is None for process in self.processes):
            for rank, process in enumerate(self.processes):
                if process.returncode:
                    self.stop()
                    self._raise(rank, process.returncode)
            if end is not None and time.monotonic() > end:
                return False
            time.sleep(_PERIOD)
        for rank, process in enumerate(self.processes):
            if process.returncode:
                self._raise(rank, process.returncode)
        return True

    def wait(self) -> None:
        """Waits for all, however they end."""
        for process in self.processes:
            process.wait()

    def stop(self) -> None:
        """Ends those that still run."""
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
        self.wait()

    def _raise(self, rank: int, code: int) -> None:
        path = os.path.join(self._folder.name, f"error.{rank}")
        reason = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                reason = "failed:\n" + file.read()
        raise RuntimeError(f"spawn: rank {rank} of {len(self.processes)} {reason}")


def spawn(func: Callable, args: Tuple = (), nprocs: int = -1, join: bool = True,
          daemon: bool = False, **options: Any) -> Ranks:
    """Calls func(*args) in nprocs processes, each a rank; -1: one for each device, or else for each
    core. They end with this process; where it ends by itself it waits for them first, unless daemon
    is set."""
    import cloudpickle

    for name in options:
        raise _core.ConfigError(f"spawn has no option '{name}'; fleetrun starts ranks on several "
                                "machines and chooses devices")
    if nprocs == -1:
        nprocs = device_count() or os.cpu_count() or 1
    if nprocs < 1:
        raise _core.ConfigError(f"spawn: nprocs={nprocs}, expected at least 1, or -1")
    folder = tempfile.TemporaryDirectory(prefix="argosy-spawn-")
    with open(os.path.join(folder.name, "call"), "wb") as file:
        file.write(cloudpickle.dumps((sys.path, func, args)))
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(nprocs)]
    addresses = ["127.0.0.1:%d" % one.getsockname()[1] for one in sockets]
    ranks = Ranks([_start(rank, addresses, one.fileno(), folder.name)
                   for rank, one in enumerate(sockets)], folder)
    for one in sockets:
        one.close()
    atexit.register(ranks.stop if daemon else ranks.wait)
    if join:
        try:
            ranks.join()
        finally:
            ranks.stop()
    return ranks


def _start(rank: int, addresses: List[str], listening: int, folder: str) -> subprocess.Popen:
    devices = device_count()
    mark, _, one = _core.mark_of_children().partition("=")
    env: Dict[str, str] = dict(
        os.environ, PADDLE_TRAINER_ID=str(rank), PADDLE_TRAINERS_NUM=str(len(addresses)),
        PADDLE_TRAINER_ENDPOINTS=",".join(addresses), PADDLE_CURRENT_ENDPOINT=addresses[rank],
        ARGOSY_LISTEN_FD=str(listening), ARGOSY_SPAWN=folder,
        **{mark: one})
    if devices:
        env["FLAGS_selected_gpus"] = str(rank % devices)
    return subprocess.Popen([sys.executable, "-c", _CHILD], env=env, pass_fds=[listening])


def _child() -> None:
    import traceback

    folder = os.environ.pop("ARGOSY_SPAWN")
    with open(os.path.join(folder, "call"), "rb") as file:
        sys.path[:], func, args = pickle.load(file)
    try:
        func(*args)
    except Exception:
        path = os.path.join(folder, "error." + os.environ["PADDLE_TRAINER_ID"])
        with open(path, "w", encoding="utf-8") as file:
            file.write(traceback.format_exc())
        sys.exit(1)
