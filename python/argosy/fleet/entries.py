"""Who gets a row of a sparse table."""

from argosy import _core


class CountFilterEntry:
    """Keys that were looked up so many times."""

    def __init__(self, count_filter: int):
        if not isinstance(count_filter, int) or count_filter < 0:
            raise _core.ConfigError(f"CountFilterEntry: {count_filter!r}, expected 0 or more")
        self._count = count_filter

    def _text(self) -> str:
        return f"count_filter({self._count})"


class ProbabilityEntry:
    """A share of all keys, chosen by chance for good."""

    def __init__(self, probability: float):
        if not isinstance(probability, float) or not 0 < probability < 1:
            raise _core.ConfigError(f"ProbabilityEntry: {probability!r}, expected a float between "
                                    "0 and 1")
        self._probability = probability

    def _text(self) -> str:
        return f"probability({self._probability!r})"


class ShowClickEntry:
    """All keys; their rows count the shows and clicks that these inputs say."""

    def __init__(self, show_name: str, click_name: str):
        self._names = show_name, click_name

    def _text(self) -> str:
        return f"show_click({self._names[0]}, {self._names[1]})"
