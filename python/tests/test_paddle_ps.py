"""A model that Paddle's parameter server has trained predicts here what it predicted there."""

import json
import pathlib
import subprocess
import sys

import pytest

TESTS = pathlib.Path(__file__).parent
RECORDED = TESTS.parent.parent / "tests" / "golden" / "paddle_ps"


def test_an_imported_model_predicts_as_paddle_did(tmp_path):
    model = tmp_path / "model"
    subprocess.run(["argosy", "ckpt", "import", RECORDED, "--to", model,
                    "--table", "table=SparseFeatFactors:9", "--rule", "adam"], check=True)
    out = subprocess.run([sys.executable, TESTS / "paddle_ps" / "ctr.py", "predict", model], text=True,
                         timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert out.returncode == 0, out.stderr[-4000:]
    expected = json.loads((RECORDED / "predictions.json").read_text())
    assert len(expected) == 32
    assert json.loads(out.stdout) == pytest.approx(expected, rel=0, abs=1e-5)
