"""Processes of scripts' jobs that are killed with SIGKILL and started again by fleetrun: the sums are
exact, or what was lost is named, and nobody waits for ever."""

import json
import os
import pathlib
import re
import signal
import subprocess
import textwrap
import time

import pytest

from test_seeds import PATIENCE, environment

# Worker i takes 2 (i + 1) from w at each of its steps: sums are whole numbers, exact in any order.
# Where the file `stop` names it, a process waits in its first life to be killed.
SUMS = """
    import os
    import sys
    import time
    import numpy as np
    import argosy
    from argosy import static
    from argosy.fleet import DistributedStrategy, Fleet

    mode, steps = sys.argv[1], 40

    def stands(place):
        first = not os.environ.get("ARGOSY_RESTART")
        wanted = os.path.exists("stop") and open("stop").read() == place
        if first and wanted:
            open("stands", "w").close()
            while not os.path.exists("go"):
                time.sleep(0.01)

    argosy.enable_static()
    x = static.data("x", [None, 1])
    one = argosy.ParamAttr(name="w", initializer=argosy.nn.initializer.Constant(0.0))
    loss = argosy.mean(static.nn.fc(x, 1, weight_attr=one, bias_attr=False))
    test = static.default_main_program().clone(for_test=True)
    strategy = DistributedStrategy()
    strategy.a_sync = mode != "sync"
    if mode == "geo":
        strategy.a_sync_configs = {"k_steps": 5}
    fleet = Fleet().init()
    fleet.distributed_optimizer(argosy.optimizer.SGD(1.0), strategy).minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        sys.exit()
    fleet.init_worker()
    index, last = fleet.worker_index(), fleet.last_step()
    exe = static.Executor()
    exe.run(static.default_startup_program())
    feed = {"x": np.full((4, 1), 2.0 * (index + 1), "float32")}
    for step in range(steps):
        if step == 20:
            fleet.util.barrier()  # the servers have 20 batches of both
            stands("worker %d" % index)
            total = fleet.util.all_reduce(np.array([index + 1.0]))
            assert total.tolist() == [3.0], total
            if os.path.exists("saves"):
                fleet.save_persistables(exe, "model")
                stands("saved %d" % index)
        exe.run(feed=feed, fetch_list=[loss])
    look = dict(program=test, feed={"x": np.ones((1, 1), "float32")}, fetch_list=[loss])
    exe.run(**look)  # behind what this worker has pushed
    fleet.barrier_worker()
    value, = exe.run(**look)
    print("w", -float(np.asarray(value).ravel()[0]), "last", last, flush=True)
    fleet.barrier_worker()
    fleet.stop_worker()
"""


def wait_for(condition) -> None:
    """Waits for something that must come true."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)


class Job:
    """A script under fleetrun with restarts."""

    def __init__(self, folder: pathlib.Path, command, restarts=1, flags=(), **more):
        self.folder = folder
        self.process = subprocess.Popen(
            ["fleetrun", "--json", f"--max_restart={restarts}", "--server_num=1", "--worker_num=2",
             *flags, *command], cwd=folder, env=environment(**more), text=True,
            stdout=open(folder / "job.out", "w"), stderr=open(folder / "job.err", "w"))

    def said(self) -> str:
        """What the launcher has said."""
        return (self.folder / "job.err").read_text()

    def log(self, name: str) -> str:
        """What a process has said, in all its lives."""
        path = self.folder / "log" / name
        return path.read_text() if path.exists() else ""

    def kill(self, kind: str, index: int) -> None:
        """As a machine does that has no memory left."""
        events = [json.loads(line) for line in self.said().splitlines() if line.startswith("{")]
        pids = [event["pid"] for event in events if event.get("event") == "started"
                and (event["kind"], event["index"]) == (kind, index)]
        os.kill(pids[-1], signal.SIGKILL)

    def wait(self) -> int:
        """The exit code of the launcher."""
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()

    def all(self) -> str:
        """For messages."""
        logs = sorted((self.folder / "log").glob("*log.*"))
        return self.said() + "".join(f"\n== {log.name}\n{log.read_text()}" for log in logs)


@pytest.fixture
def sums(tmp_path):
    """Starts SUMS; `stop` is where a process waits to be killed."""
    jobs = []

    def start(mode, stop, saves=False, flags=()):
        (tmp_path / "train.py").write_text(textwrap.dedent(SUMS))
        (tmp_path / "stop").write_text(stop)
        if saves:
            (tmp_path / "saves").touch()
        jobs.append(Job(tmp_path, ["train.py", mode], flags=flags))
        wait_for(lambda: (tmp_path / "stands").exists())
        return jobs[-1]

    yield start
    for job in jobs:
        job.process.kill()


def result(job: Job, worker: int) -> tuple:
    """(w, last) of the line that a worker ends with."""
    w, last = re.findall(r"^w ([0-9.]+) last ([0-9]+)$", job.log(f"workerlog.{worker}"), re.M)[-1]
    return float(w), int(last)


MODES = ["sync", "async", "geo"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("worker", [0, 1])
def test_a_worker_that_is_killed_goes_on_behind_what_the_servers_have(sums, mode, worker):
    job = sums(mode, f"worker {worker}")
    job.kill("worker", worker)
    assert job.wait() == 0, job.all()
    w, last = result(job, worker)
    assert last == 20, job.all()
    assert f"worker {worker} was started again: the servers have 20 batches of its data, which are " \
        "computed and not pushed" in job.log(f"workerlog.{worker}")
    if mode == "geo":  # half of each difference stays behind until the next exchange
        assert "; what it had changed and not sent is lost" in job.log(f"workerlog.{worker}")
        assert 120 < w < 240, job.all()
        return
    # The mean of both workers' gradients, or their sum.
    exact = 40 * (2 + 4) / (2 if mode == "sync" else 1)
    dead = f"worker {worker} is taken for dead" in job.log("serverlog.0")
    assert w == exact or (mode == "sync" and dead), job.all()


NO_JOURNAL = ["--durability=none"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("durability", ["journal", "fsync"])
def test_a_server_comes_back_with_its_journal(sums, tmp_path, mode, durability):
    job = sums(mode, "worker 0", flags=[f"--durability={durability}"])
    job.kill("server", 0)
    wait_for(lambda: "has its journal, up to exchange" in job.log("workerlog.0"))
    (tmp_path / "go").touch()
    assert job.wait() == 0, job.all()
    # As without a kill; in geo mode half of each difference comes back with the next exchange.
    assert result(job, 0)[0] == {"sync": 120, "async": 240, "geo": 210.1171875}[mode], job.all()


@pytest.mark.parametrize("mode", MODES)
def test_a_server_without_a_save_ends_the_job_by_name(sums, mode):
    job = sums(mode, "worker 0", flags=NO_JOURNAL)
    job.kill("server", 0)
    assert job.wait() != 0, job.all()
    assert "server 0 was lost and there is no saved model of this job: its part of the parameters is " \
        "gone" in job.all()
    assert "w " not in job.log("workerlog.1")


@pytest.mark.parametrize("mode", MODES)
def test_a_server_comes_back_with_the_save_of_its_job(sums, tmp_path, mode):
    job = sums(mode, "saved 0", saves=True, flags=NO_JOURNAL)
    job.kill("server", 0)
    wait_for(lambda: "came back with the model of model: saved" in job.log("serverlog.0"))
    (tmp_path / "go").touch()
    assert job.wait() == 0, job.all()
    w, _ = result(job, 0)
    if mode == "geo":
        assert 0 < w < 240, job.all()
        return
    # What worker 1 pushed between the save and the kill is lost, and said to be.
    lost = sum(map(int, re.findall(r"worker . had .* ([0-9]+) are lost", job.log("serverlog.0"))))
    dead = "is taken for dead" in job.log("serverlog.0")
    assert lost > 0 or dead or w == 40 * (2 + 4) / (2 if mode == "sync" else 1), job.all()


def test_a_save_of_an_earlier_job_does_not_count(sums, tmp_path):
    job = sums("async", "saved 0", saves=True)
    (tmp_path / "go").touch()
    assert job.wait() == 0, job.all()
    assert (tmp_path / "model" / "persistables.argosy").exists()
    for name in ("stands", "go", "saves"):
        (tmp_path / name).unlink()
    job = sums("async", "worker 0", flags=NO_JOURNAL)
    job.kill("server", 0)
    assert job.wait() != 0, job.all()
    assert "there is no saved model of this job" in job.all()


def readme_script() -> str:
    """train.py as the README has it."""
    readme = pathlib.Path(__file__).parents[2] / "README.md"
    return re.search(r"```python train.py\n(.*?)```", readme.read_text(), re.S).group(1)


@pytest.mark.parametrize("durability", ["none", "journal"])
def test_the_server_of_the_readme_is_killed(tmp_path, durability):
    script = readme_script()
    pause = "    for _ in range(100):\n"
    assert pause in script
    script = "import os, time\n" + script.replace(pause, """\
    for step in range(100):
        if step == 50:
            open("stands%d" % fleet.worker_index(), "w").close()
            while not os.path.exists("go"):
                time.sleep(0.01)
""")
    (tmp_path / "train.py").write_text(script)
    job = Job(tmp_path, ["train.py"], flags=[f"--durability={durability}"], ARGOSY_DATA="")
    wait_for(lambda: all((tmp_path / f"stands{i}").exists() for i in range(2)))
    job.kill("server", 0)
    (tmp_path / "go").touch()
    if durability == "none":
        assert job.wait() != 0, job.all()
        assert "server 0 was lost and there is no saved model of this job" in job.all()
        return
    assert job.wait() == 0, job.all()
    loss, = re.findall(r"worker 0: loss ([0-9.]+)", job.log("workerlog.0"))
    assert 0.9 < float(loss) < 1.1, job.all()


def status_of(folder: pathlib.Path) -> str:
    """What `argosy status` says of a job."""
    return subprocess.run(["argosy", "status"], cwd=folder, env=environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=PATIENCE).stdout


def ctr_script(folder: pathlib.Path) -> None:
    """examples/python/ctr.py, which stands still in the first life of worker 1 once it trains."""
    text = (pathlib.Path(__file__).parents[2] / "examples/python/ctr.py").read_text()
    loop = "    for epoch in range(args.epochs):\n"
    assert loop in text
    (folder / "ctr.py").write_text(text.replace(loop, loop + """\
        import time
        while epoch == 1 and fleet.worker_index() == 1 and not os.environ.get("ARGOSY_RESTART"):
            open("stands", "w").close()
            time.sleep(0.01)
"""))


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_a_worker_of_the_ctr_example_is_killed(tmp_path, mode):
    ctr_script(tmp_path)
    job = Job(tmp_path, ["ctr.py", "--mode", mode, "--rows", "8000"])
    wait_for(lambda: (tmp_path / "stands").exists())
    wait_for(lambda: re.search(r"worker 1 .* of epoch \d", status_of(tmp_path)))
    assert "has not reported yet" not in status_of(tmp_path)
    job.kill("worker", 1)
    assert job.wait() == 0, job.all()
    assert "worker 1 was started again: the servers have 8 batches of its data" in \
        job.log("workerlog.1"), job.all()
    assert "test auc" in job.log("workerlog.0"), job.all()
