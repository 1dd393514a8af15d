"""Messages between a loader and its worker processes.

A message is a pickled object over a Unix socket, its arrays beside the pickle (protocol 5). Arrays
of some size travel in anonymous shared memory instead, whose descriptor goes along: nothing has a
name, so nothing is left behind, whoever dies.
"""

import array
import mmap
import os
import pickle
import socket
import struct
from typing import Any, List, Optional, Tuple

_HEADER = struct.Struct("=QQQ")  # bytes of the pickle, number of arrays, bytes in shared memory
_SHARED_FROM = 256 << 10
_ALIGNMENT = 64


class Channel:
    """One end of the socket."""

    def __init__(self, end: socket.socket, shared_memory: bool = True):
        self.socket = end
        self._shared_memory = shared_memory

    def send(self, message: Any, pickler: Any = pickle) -> None:
        """Hands a message over; blocks until the other side has room for it."""
        buffers: List[pickle.PickleBuffer] = []
        body = pickler.dumps(message, protocol=5, buffer_callback=buffers.append)
        views = [buffer.raw() for buffer in buffers]
        sizes = array.array("Q", [view.nbytes for view in views]).tobytes()
        shared = sum(map(_padded, (view.nbytes for view in views)))
        if not self._shared_memory or shared < _SHARED_FROM:
            self.socket.sendall(b"".join([_HEADER.pack(len(body), len(views), 0), sizes, body,
                                          *views]))
            return
        memory = _fill_memory(views, shared)
        try:
            header = _HEADER.pack(len(body), len(views), shared)
            socket.send_fds(self.socket, [header], [memory])
            self.socket.sendall(sizes + body)
        finally:
            os.close(memory)

    def receive(self) -> Any:
        """The next message. Raises EOFError when the other side is gone."""
        header, memory = self._receive_header()
        length, count, shared = _HEADER.unpack(header)
        sizes = array.array("Q", self._exactly(8 * count)).tolist()
        body = self._exactly(length)
        if memory is None:
            return pickle.loads(body, buffers=[self._exactly(size) for size in sizes])
        rest = memoryview(mmap.mmap(memory, shared, access=mmap.ACCESS_COPY))
        os.close(memory)
        buffers, at = [], 0
        for size in sizes:
            buffers.append(rest[at:at + size])
            at += _padded(size)
        return pickle.loads(body, buffers=buffers)

    def close(self) -> None:
        """Lets the other side see the end."""
        self.socket.close()

    def _receive_header(self) -> Tuple[bytes, Optional[int]]:
        header, descriptors, _, _ = socket.recv_fds(self.socket, _HEADER.size, 1)
        if not header:
            raise EOFError
        header += self._exactly(_HEADER.size - len(header))
        return header, descriptors[0] if descriptors else None

    def _exactly(self, size: int) -> bytearray:
        data = bytearray(size)
        view = memoryview(data)
        while view:
            got = self.socket.recv_into(view)
            if got == 0:
                raise EOFError
            view = view[got:]
        return data


def _padded(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT


def _fill_memory(views: List[memoryview], size: int) -> int:
    memory = os.memfd_create("argosy-batch")
    os.ftruncate(memory, size)
    with mmap.mmap(memory, size) as target:
        at = 0
        for view in views:
            target[at:at + view.nbytes] = view
            at += _padded(view.nbytes)
    return memory
