"""The listings of docs/tutorials and of the README's section on Python, run as a reader would run them.

docs/tutorials/README.md has the rules: which listings are files, commands and output.
"""

import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
from typing import Dict, List, NamedTuple

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TUTORIALS = SOURCE / "docs" / "tutorials"
NAMES = sorted(path.name[:-len(".zh.md")] for path in TUTORIALS.glob("*.zh.md")
               if not path.name.startswith("README"))
PATIENCE = 240
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
    """Those of a file, from a heading to the next of its level."""
    text = path.read_text(encoding="utf-8")
    first = text.index(begin)
    last = text.find("\n## ", first + 1) if begin else -1
    return [Listing(match[1], match[2].strip(), match[3],
                    f"{path.name}:{text.count(chr(10), 0, match.start()) + 1}")
            for match in FENCE.finditer(text)
            if match.start() >= first and (last < 0 or match.start() < last)]


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


class Reader:
    """Does what a document says, from its first listing to its last."""

    def __init__(self, folder: pathlib.Path):
        self._folder = folder
        self._ports = free_ports()
        self._env = environment()
        self._terminals: Dict[subprocess.Popen, Listing] = {}
        self._expected: Dict[str, List[Listing]] = {}
        self._last = ""

    def follow(self, found: List[Listing]) -> None:
        """Runs everything; the output of a command is checked when it has ended."""
        try:
            for number, listing in enumerate(found):
                outputs = []
                for later in found[number + 1:]:
                    if later.language != "text":
                        break
                    outputs.append(later)
                self._do(listing, outputs)
            self._wait()
        finally:
            for job in self._terminals:
                _kill(job)

    def _do(self, listing: Listing, outputs: List[Listing]) -> None:
        if listing.language == "sh":
            if not listing.name:
                self._wait()
            job = self._start(listing)
            self._terminals[job] = listing
            self._expected[listing.place] = outputs
            if not listing.name:
                self._wait()
        elif listing.language != "text":
            assert listing.language and listing.name, f"{listing.place}: neither a file nor commands"
            (self._folder / listing.name).write_text(self._own_ports(listing.text), encoding="utf-8")

    def _start(self, listing: Listing) -> subprocess.Popen:
        return subprocess.Popen(["bash", "-e", "-o", "pipefail", "-c", self._own_ports(listing.text)],
                                cwd=self._folder, env=self._env, text=True, start_new_session=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def _wait(self) -> None:
        """Until all terminals are done."""
        for job, listing in list(self._terminals.items()):
            out, _ = job.communicate(timeout=PATIENCE)
            del self._terminals[job]
            assert job.returncode == 0, f"{listing.place}: exit code {job.returncode}\n{out[-6000:]}"
            for expected in self._expected[listing.place]:
                check_output(expected._replace(text=self._own_ports(expected.text)), out)

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


@pytest.mark.parametrize("name", NAMES)
def test_both_languages_have_the_same_listings(name):
    english, chinese = (listings(TUTORIALS / f"{name}.{end}") for end in ("md", "zh.md"))
    assert [one[:3] for one in english] == [one[:3] for one in chinese]


def test_every_tutorial_has_both_languages():
    english = {path.name[:-3] for path in TUTORIALS.glob("*.md") if not path.name.endswith(".zh.md")}
    assert english == set(NAMES) | {"README"}
    assert len(NAMES) == 5


def test_readme_runs():
    """From its first file on; the installation above it has a test of its own."""


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
