"""The losses of the first steps against those of Paddle, with the same first values and batches."""

import json
import pathlib
import subprocess
import sys

import pytest

TRACES = pathlib.Path(__file__).parent / "traces"
CASES = sorted(path.stem for path in TRACES.glob("*.json"))


def losses(case: str) -> list:
    """Ours, of the script that Paddle has run as well."""
    out = subprocess.run([sys.executable, TRACES / "models.py", case], text=True, timeout=240,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert out.returncode == 0, out.stderr[-4000:]
    return json.loads(out.stdout)


def test_every_case_is_recorded():
    out = subprocess.run([sys.executable, TRACES / "models.py"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    assert sorted(out.split()) == CASES


@pytest.mark.parametrize("case", CASES)
def test_losses_are_those_of_paddle(case):
    recorded = json.loads((TRACES / f"{case}.json").read_text())["losses"]
    assert len(recorded) == 20
    assert losses(case) == pytest.approx(recorded, rel=1e-4, abs=0)
