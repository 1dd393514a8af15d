"""The short form of `make soak PART=kills`: jobs that count, killed at random, counted again by awk."""

import pathlib
import subprocess
import sys

import pytest

from test_seeds import environment

KILLS = pathlib.Path(__file__).parents[2] / "tests" / "soak" / "kills.py"


@pytest.mark.parametrize("mode", ["sync", "async", "half_async", "geo"])
def test_killed_jobs_count_every_id_once(mode):
    result = subprocess.run(
        [sys.executable, str(KILLS), "--servers", "2", "--workers", "2", "--all", "1", "--readme", "0",
         "--modes", mode], env=environment(), text=True, timeout=300,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == 0, result.stdout
    assert f"| {mode} | 1 | 2 | 2 | 1 | 0 | 0 | 0 |" in result.stdout, result.stdout
