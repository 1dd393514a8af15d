"""python -m paddle.distributed.launch and its like."""

import subprocess
import sys

import pytest

from argosy._launch import launch_ps_arguments

SCRIPT = """
import os, sys
role, number = os.environ.get("TRAINING_ROLE"), os.environ.get("PADDLE_TRAINER_ID")
print(role, number, sys.executable, sys.argv[1:])
"""


def run(folder, module, *arguments):
    """A launch module in a folder with a script."""
    (folder / "train.py").write_text(SCRIPT)
    return subprocess.run([sys.executable, "-m", module, *arguments], cwd=folder, text=True,
                          timeout=100, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


@pytest.mark.parametrize("module", ["paddle.distributed.launch", "paddle.distributed.fleet.launch"])
def test_launch_is_fleetrun_with_this_python(module, tmp_path):
    done = run(tmp_path, module, "--server_num=1", "--worker_num=2", "train.py", "--lr", "3")
    assert done.returncode == 0, done.stdout
    log = (tmp_path / "log" / "workerlog.1").read_text()
    assert f"TRAINER 1 {sys.executable} ['--lr', '3']" in log
    assert "PSERVER" in (tmp_path / "log" / "serverlog.0").read_text()


def test_launch_ps_has_its_own_log_folder(tmp_path):
    done = run(tmp_path, "paddle.distributed.launch_ps", "--start_port", "0", "--worker_num", "2",
               "--server_num", "1", "train.py", "--is_local", "0")
    assert done.returncode == 0, done.stdout
    log = (tmp_path / "logs" / "workerlog.1").read_text()
    assert f"TRAINER 1 {sys.executable} ['--is_local', '0']" in log
    assert not (tmp_path / "log").exists()


def test_launch_ps_has_its_own_defaults():
    assert launch_ps_arguments(["train.py", "-x"]) == [
        "--log_dir=logs", "--server_num=2", "--worker_num=2", "--start_port=6170", "train.py", "-x"]
    assert launch_ps_arguments(["--endpoints=a:1,b:2", "--worker_num=2", "--print_config=False",
                                "train.py"]) == ["--log_dir=logs", "--servers=a:1,b:2",
                                                 "--workers=127.0.0.1,127.0.0.1",
                                                 "--log_level=WARNING", "train.py"]


@pytest.mark.parametrize("arguments, message", [
    (["--endpoints=a:1", "--server_num=2", "train.py"], "--endpoints has 1 addresses"),
    (["--node_ip=10.9.8.7", "train.py"], "on this machine only"),
    (["--print_config=perhaps", "train.py"], "expected True or False"),
    ([], "training_script"),
])
def test_what_launch_ps_cannot_do_is_refused(arguments, message, capsys):
    with pytest.raises(SystemExit) as caught:
        launch_ps_arguments(arguments)
    assert message in str(caught.value.code) + capsys.readouterr().err


def test_a_script_that_fails_makes_the_launcher_fail(tmp_path):
    (tmp_path / "bad.py").write_text("raise SystemExit(7)")
    done = run(tmp_path, "paddle.distributed.launch", "--nproc_per_node=1", "bad.py")
    assert done.returncode == 7, done.stdout
