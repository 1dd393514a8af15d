"""How far a pass is: a bar in notebooks, a line in terminals, nothing elsewhere."""

import contextlib
import sys
from typing import Callable, Iterator, Optional

_WIDTH = 30


def _text(step: int, steps: int, samples: int, seconds: float) -> str:
    speed = samples / seconds if seconds > 0 else 0.0
    place = f"{step}/{steps}" if steps else f"{step}"
    return f"step {place}  {samples} instances  {speed:.0f} instances/s"


class _NotebookBar:
    """A bar that is drawn over itself."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._shown = display(HTML(""), display_id=True)

    def __call__(self, step: int, steps: int, samples: int, seconds: float) -> None:
        bar = f'<progress value="{step}" max="{steps}"></progress> ' if steps else ""
        self._shown.update(self._html(bar + _text(step, steps, samples, seconds)))

    def close(self) -> None:
        """Stays as it is."""


class _TerminalLine:
    """A line that is written over itself."""

    def __init__(self) -> None:
        self._length = 0

    def __call__(self, step: int, steps: int, samples: int, seconds: float) -> None:
        done = _WIDTH * step // steps if steps else 0
        bar = f"[{'#' * done}{'.' * (_WIDTH - done)}] " if steps else ""
        line = bar + _text(step, steps, samples, seconds)
        sys.stderr.write("\r" + line.ljust(self._length))
        sys.stderr.flush()
        self._length = len(line)

    def close(self) -> None:
        """Leaves an empty line."""
        if self._length:
            sys.stderr.write("\r" + " " * self._length + "\r")
            sys.stderr.flush()


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return found is not None and type(found).__name__ == "ZMQInteractiveShell"


@contextlib.contextmanager
def pass_progress() -> Iterator[Optional[Callable[[int, int, int, float], None]]]:
    """What to call now and then with (step, steps or 0, instances, seconds), or None."""
    bar = _NotebookBar() if _in_notebook() else _TerminalLine() if sys.stderr.isatty() else None
    try:
        yield bar
    finally:
        if bar is not None:
            bar.close()
