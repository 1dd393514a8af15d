"""The listings of docs/tutorials and of the README's section on Python, run as a reader would run them.

docs/tutorials/README.md has the rules: which listings are files, commands and output.
"""

import itertools
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
from typing import IO, Dict, List, NamedTuple

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TUTORIALS = SOURCE / "docs" / "tutorials"
NAMES = sorted(path.name[:-len(".zh.md")] for path in TUTORIALS.glob("*.zh.md")
               if not path.name.startswith("README"))
PATIENCE = 200
FENCE = re.compile(r"^```(\S*) *([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORT = re.compile(r"\b617\d\b")
# In expected output: "..." is any text, a figure with a decimal point any such figure.
OPEN = re.compile(r"(\.\.\.|(?<![\d.])\d+\.\d+(?![\d.]))")


class Listing(NamedTuple):
    """A fenced block: its language, what stands behind that, its text and where it is."""

    language: str
    name: str
    text: str
    place: str


def listings(path: pathlib.Path, begin: str = "") -> List[Listing]:
    """All of a file, or those between one of its headings and the next."""
    text = path.read_text(encoding="utf-8")
    first = text.index(begin)
    last = text.find("\n## ", first + 1) if begin else len(text)
    return [Listing(match[1], match[2].strip(), match[3],
                    f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}")
            for match in FENCE.finditer(text) if first <= match.start() < last]


def free_ports() -> Dict[str, str]:
    """Free ones for 6170 to 6179, below those that systems give out by themselves."""
    ports: List[str] = []
    candidate = 20000 + os.getpid() * 10 % 10000
    while len(ports) < 10:
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", candidate))
                ports.append(str(candidate))
            except OSError:
                pass
        candidate += 1
    return {str(6170 + number): port for number, port in enumerate(ports)}


def environment() -> Dict[str, str]:
    """A reader's: no data, no job; `python` is this one."""
    ours = ("PADDLE_", "FLAGS_", "TRAINING_ROLE", "POD_IP", "CUDA_", "ARGOSY_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env["ARGOSY_PYTHON"] = sys.executable
    env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + env["PATH"]
    return env


class Running(NamedTuple):
    """Commands that were started, where their output goes, and what it should be."""

    job: subprocess.Popen
    out: IO[str]
    listing: Listing
    expected: List[Listing]


class Reader:
    """Does what a document says, from its first listing to its last."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._ports = free_ports()
        self._env = environment()
        self._running: List[Running] = []

    def follow(self, found: List[Listing]) -> None:
        """Runs everything; the output of commands is checked when they have ended."""
        try:
            for number, listing in enumerate(found):
                outputs = itertools.takewhile(lambda one: one.language == "text", found[number + 1:])
                self._do(listing, list(outputs))
            self._wait()
        finally:
            for running in self._running:
                _kill(running.job)

    def _do(self, listing: Listing, outputs: List[Listing]) -> None:
        if listing.language == "sh":
            in_a_terminal = listing.name != ""
            if not in_a_terminal:
                self._wait()
            self._start(listing, outputs)
            if not in_a_terminal:
                self._wait()
        elif listing.language != "text":
            assert listing.language and listing.name, f"{listing.place}: neither a file nor commands"
            (self._folder / listing.name).write_text(self._own_ports(listing.text), encoding="utf-8")

    def _start(self, listing: Listing, outputs: List[Listing]) -> None:
        out = tempfile.TemporaryFile(mode="w+", errors="replace")
        job = subprocess.Popen(["bash", "-e", "-o", "pipefail", "-c", self._own_ports(listing.text)],
                               cwd=self._folder, env=self._env, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT)
        self._running.append(Running(job, out, listing, outputs))

    def _wait(self) -> None:
        """Until all terminals are done."""
        while self._running:
            job, out, listing, outputs = self._running[0]
            job.wait(timeout=PATIENCE)
            out.seek(0)
            text = out.read()
            del self._running[0]
            assert job.returncode == 0, f"{listing.place}: exit code {job.returncode}\n{text[-6000:]}"
            for expected in outputs:
                check_output(expected._replace(text=self._own_ports(expected.text)), text)

    def _own_ports(self, text: str) -> str:
        return PORT.sub(lambda match: self._ports[match[0]], text)


def _kill(job: subprocess.Popen) -> None:
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def pattern(line: str) -> "re.Pattern[str]":
    """Of the lines that an expected one stands for."""
    parts = OPEN.split(" ".join(line.split()))
    return re.compile("".join(re.escape(part) if number % 2 == 0
                              else r".*" if part == "..." else r"-?\d+\.\d+"
                              for number, part in enumerate(parts)))


def check_output(expected: Listing, out: str) -> None:
    """Every expected line is there, in this order; there may be others between them."""
    lines = iter([" ".join(line.split()) for line in out.replace("\r", "\n").splitlines()])
    for line in expected.text.splitlines():
        if line.strip() not in ("", "..."):
            wanted = pattern(line)
            assert any(wanted.fullmatch(one) for one in lines), \
                f"{expected.place}: no line like '{line}' (behind those above it) in\n{out[-6000:]}"


@pytest.mark.parametrize("name", NAMES)
def test_listings_of_a_tutorial_run(name, tmp_path):
    Reader(tmp_path).follow(listings(TUTORIALS / f"{name}.md"))


def test_readme_runs(tmp_path):
    """Its section on Python, from the first file on; test_wheel.py installs what is above that."""
    found = listings(SOURCE / "README.md", "\n## From Python")
    files = [number for number, one in enumerate(found) if one.language == "python"]
    Reader(tmp_path).follow(found[files[0]:])


@pytest.mark.parametrize("path", [*(f"docs/tutorials/{name}" for name in NAMES),
                                  "docs/tutorials/README", "README"])
def test_both_languages_have_the_same_listings(path):
    english, chinese = (listings(SOURCE / f"{path}.{end}") for end in ("md", "zh.md"))
    assert english and [one[:3] for one in english] == [one[:3] for one in chinese]


def test_every_tutorial_has_both_languages():
    english = {path.name[:-3] for path in TUTORIALS.glob("*.md") if not path.name.endswith(".zh.md")}
    assert english == set(NAMES) | {"README"}
    assert len(NAMES) == 6


@pytest.mark.parametrize("expected, out, fits", [
    ("loss 0.5", "loss 1.25\n", True),
    ("loss 0.5", "loss x\n", False),
    ("a\nb", "b\na\n", False),
    ("a\n...\nb", "x\na\nx\nb\n", True),
    ("at 127.0.0.1", "at 127.9.0.1\n", False),
    ("step ... done", "step 7 was done\n", True),
])
def test_output_is_compared_line_by_line(expected, out, fits):
    listing = Listing("text", "", expected, "here:1")
    if fits:
        check_output(listing, out)
    else:
        with pytest.raises(AssertionError, match="here:1: no line like"):
            check_output(listing, out)
