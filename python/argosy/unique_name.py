"""Names that no other layer or parameter has."""

import contextlib

_counts: dict = {}


def generate(key: str) -> str:
    """key_0, key_1, ..."""
    number = _counts.get(key, 0)
    _counts[key] = number + 1
    return f"{key}_{number}"


def switch(counts=None) -> dict:
    """Begins to count anew, or where a dict of counts says; returns the counts so far."""
    global _counts
    before = _counts
    _counts = {} if counts is None else counts
    return before


@contextlib.contextmanager
def guard(prefix=None):
    """Counts anew inside."""
    before = switch()
    try:
        yield
    finally:
        switch(before)
