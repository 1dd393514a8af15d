"""docs/reference/python.md is what the packages say of themselves."""

import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parents[2]


def test_reference_is_up_to_date():
    done = subprocess.run([sys.executable, SOURCE / "dev" / "python_reference.py", "--check"], text=True,
                          timeout=200, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout


def test_every_public_name_is_described():
    page = (SOURCE / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 300
    assert not [row for row in rows if row.endswith("|  |")]
