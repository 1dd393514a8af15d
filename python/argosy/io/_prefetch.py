"""Items made ahead by a thread."""

import queue
import threading
from typing import Any, Callable, Iterator

_WAIT = 0.2  # seconds until a full queue's thread looks whether it is still wanted


class _Failure:
    def __init__(self, error: BaseException):
        self.error = error


_END = object()


def prefetched(make: Callable[[], Iterator[Any]], ahead: int) -> Iterator[Any]:
    """What make() iterates over, `ahead` items made in advance; its exceptions are raised here."""
    items: "queue.Queue[Any]" = queue.Queue(maxsize=ahead)
    stop = threading.Event()
    thread = threading.Thread(target=_fill, args=(make, items, stop), name="argosy-prefetch",
                              daemon=True)
    thread.start()
    try:
        while True:
            item = items.get()
            if item is _END:
                return
            if isinstance(item, _Failure):
                raise item.error
            yield item
    finally:
        stop.set()


def _fill(make: Callable[[], Iterator[Any]], items: "queue.Queue[Any]",
          stop: threading.Event) -> None:
    source = None
    try:
        source = make()
        for item in source:
            if not _put(items, item, stop):
                return
        _put(items, _END, stop)
    except BaseException as error:
        _put(items, _Failure(error), stop)
    finally:
        if hasattr(source, "close"):
            source.close()


def _put(items: "queue.Queue[Any]", item: Any, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            items.put(item, timeout=_WAIT)
            return True
        except queue.Full:
            pass
    return False
