"""How far a pass is, where somebody looks."""

import sys
import types

from argosy import _progress


class Terminal:
    """Something that looks like one."""

    def __init__(self):
        self.text = ""

    def write(self, text):
        self.text += text

    def flush(self):
        pass

    def isatty(self):
        return True


def test_a_terminal_gets_a_line_that_goes_away(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with _progress.pass_progress() as show:
        show(5, 10, 500, 2.0)
        show(6, 10, 600, 2.0)
    first, second, gone = terminal.text.split("\r")[1:4]
    assert first == "[" + "#" * 15 + "." * 15 + "] step 5/10  500 instances  250 instances/s"
    assert "300 instances/s" in second and gone.strip() == ""


def test_a_log_gets_nothing(capsys):
    with _progress.pass_progress() as show:
        assert show is None


def test_a_notebook_gets_a_bar(monkeypatch):
    updates = []
    handle = types.SimpleNamespace(update=lambda html: updates.append(html))
    shell = types.ModuleType("IPython")
    shell.get_ipython = lambda: type("ZMQInteractiveShell", (), {})()
    display = types.ModuleType("IPython.display")
    display.HTML = str
    display.display = lambda html, display_id: handle
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    with _progress.pass_progress() as show:
        show(3, 12, 300, 1.0)
    assert updates == ['<progress value="3" max="12"></progress> step 3/12  300 instances  '
                       '300 instances/s']
