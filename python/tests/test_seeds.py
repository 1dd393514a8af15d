"""The scripts of the seeds, run by the launch lines of the seeds."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

SEEDS = pathlib.Path(__file__).parent / "seeds"
PATIENCE = 240


def copy_of(seed: str, folder: pathlib.Path) -> pathlib.Path:
    """The script and its modules, where it may write."""
    target = folder / seed
    shutil.copytree(SEEDS / seed, target)
    return target


def environment(**more: str) -> dict:
    """Ours, with a `python` that is this one."""
    env = dict(os.environ, ARGOSY_PYTHON=sys.executable, **more)
    env["PATH"] = os.path.dirname(sys.executable) + os.pathsep + env["PATH"]
    for name in ("PADDLE_TRAINERS_NUM", "TRAINING_ROLE", "PADDLE_PSERVERS_IP_PORT_LIST"):
        env.pop(name, None)
    return env


def run(command, folder, expected=0, **more) -> str:
    """What a command printed; its end must be as expected."""
    result = subprocess.run(command, cwd=folder, env=environment(**more), text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE)
    logs = "".join(f"\n== {log.name}\n{log.read_text()[-3000:]}"
                   for log in sorted(folder.glob("log*/*log.*")))
    assert result.returncode == expected, result.stdout[-4000:] + logs
    return result.stdout


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def criteo_rows(folder: pathlib.Path, name: str, files: int, rows: int) -> None:
    """Generated click logs in Criteo's form, in files part-0, part-1, ..."""
    run(["argosy", "gen", "criteo", "--rows", str(rows), "--files", "1", "--out", "made"], folder)
    made, = (folder / "made").glob("part*")
    lines = made.read_text().splitlines(keepends=True)
    (folder / name).mkdir()
    for part in range(files):
        (folder / name / f"part-{part}").write_text("".join(lines[part::files]))


@pytest.fixture
def ctr(tmp_path):
    """Seed 000 with a little data, and fewer passes than the 20 printed."""
    folder = copy_of("000_ctr", tmp_path)
    criteo_rows(folder, "raw_data", 4, 4000)
    script = (folder / "train.py").read_text()
    (folder / "train.py").write_text(script.replace("epoch=20", "epoch=2"))
    return folder


def figures(text: str, name: str) -> list:
    """The numbers that lines "step N <name> <value>" print."""
    return [float(line.split("\t")[2]) for line in text.splitlines()
            if line.startswith("step ") and line.split("\t")[1] == name]


def test_ctr_alone(ctr):
    out = run([sys.executable, "train.py", "--is_local", "1"], ctr)
    assert len(figures(out, "auc")) >= 2, out
    assert all(0 <= auc <= 1 for auc in figures(out, "auc"))


def test_ctr_with_servers(ctr):
    out = run([sys.executable, "-m", "paddle.distributed.launch_ps", "--worker_num", "2",
               "--server_num", "2", "train.py"], ctr)
    for worker in range(2):
        log = (ctr / "logs" / f"workerlog.{worker}").read_text()
        assert len(figures(log, "auc")) >= 2, out + log
    assert "Server listening on" in (ctr / "logs" / "serverlog.0").read_text()


def test_fit_a_line_alone(tmp_path):
    folder = copy_of("001_fit_a_line", tmp_path)
    run([sys.executable, "fit_a_line.py"], folder)
    assert (folder / "fit_a_line.model").is_dir()


def test_fit_a_line_transpiled(tmp_path):
    folder = copy_of("001_fit_a_line", tmp_path)
    shared = {"PADDLE_PSERVER_PORT": str(free_port()), "PADDLE_PSERVER_IPS": "127.0.0.1",
              "PADDLE_TRAINERS": "2", "PADDLE_CURRENT_IP": "127.0.0.1"}

    def start(role: str, number: int) -> subprocess.Popen:
        env = environment(PADDLE_TRAINING_ROLE=role, PADDLE_TRAINER_ID=str(number), **shared)
        return subprocess.Popen([sys.executable, "test_fit_a_line.py"], cwd=folder, env=env,
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    jobs = [start("PSERVER", 1), start("TRAINER", 0), start("TRAINER", 1)]
    try:
        outs = [job.communicate(timeout=PATIENCE)[0] for job in jobs[1:] + jobs[:1]]
    finally:
        for job in jobs:
            job.kill()
    assert [job.returncode for job in jobs] == [0, 0, 0], "\n---\n".join(outs)
    assert f"Server listening on 127.0.0.1:{shared['PADDLE_PSERVER_PORT']}" in outs[2]


@pytest.mark.skipif("ARGOSY_DATA" not in os.environ, reason="ARGOSY_DATA names no data")
def test_mnist_as_printed(tmp_path):
    folder = copy_of("002_mnist", tmp_path)
    script = (folder / "train.py").read_text()
    (folder / "train.py").write_text(script.replace("epoch = 10", "epoch = 1"))
    out = run([sys.executable, "train.py"], folder, ARGOSY_EMULATED_DEVICES="1")
    lines = [line for line in out.splitlines() if line.startswith("epoch: 0, step:")]
    assert [line.split(",")[1] for line in lines] == [f" step:{n}" for n in (200, 400, 600, 800)]


def test_mnist_without_a_device_says_what_to_do(tmp_path):
    folder = copy_of("002_mnist", tmp_path)
    out = run([sys.executable, "train.py"], folder, expected=1, ARGOSY_EMULATED_DEVICES="")
    assert "ARGOSY_EMULATED_DEVICES" in out.splitlines()[-1]


@pytest.mark.parametrize("a_sync", ["0", "1"])
def test_fleetx_with_servers(tmp_path, a_sync):
    folder = copy_of("003_fleetx", tmp_path)
    criteo_rows(folder, "train_data", 2, 3000)
    script = (folder / "ctr_app.py").read_text()
    (folder / "ctr_app.py").write_text(script.replace("epoch=10", "epoch=6"))
    out = run(["fleetrun", "--server_num=1", "--worker_num=2", "ctr_app.py"], folder, A_SYNC=a_sync)
    for worker in range(2):
        log = (folder / "log" / f"workerlog.{worker}").read_text()
        steps = [line for line in log.splitlines() if line.startswith(f"worker_index: {worker}, step")]
        assert len(steps) == 8, out + log
        assert "train_loss:" in steps[-1] and "speed:" in steps[-1]


@pytest.mark.parametrize("mode", ["local", "fleet", "gpubox"])
def test_paddlerec_model(tmp_path, mode):
    folder = copy_of("004_paddlerec", tmp_path)
    out = run([sys.executable, "static_model.py", mode], folder)
    losses = [float(line.split()[-1]) for line in out.splitlines() if line.startswith("step")]
    assert len(losses) == 3 and losses[-1] < 0.8 * losses[0], out
