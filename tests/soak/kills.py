"""Kills processes of training jobs with -9 at random moments, and counts again what they have learned.

Each job counts the ids of its files (counts.py) with two servers and two workers under fleetrun
--max_restart. When it has ended, awk counts the same files, and the sums of the saved model must be equal:
one too few is a push that was lost, one too many a push that was applied twice. A job that does not end in
time hangs. Some jobs also lose everything at once, the launcher too, and are started again with --resume.
Afterwards processes of the README's script are killed in the same way.

Run by `make soak PART=kills`, which notes the table in its report. What happens to a job follows from
--seed and the machine's timing; the folders of jobs that failed are kept.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
MODES = ["sync", "async", "half_async", "geo"]
DEADLINE = 180  # seconds until a job hangs
FILES, LINES, VOCABULARY = 8, 1600, 200
MOST_PER_JOB = (4, 4, 1)  # a process that is started again often waits longer each time
EPOCHS = 2


def parse_args() -> argparse.Namespace:
    """What may be chosen."""
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=100, help="servers to kill")
    parser.add_argument("--workers", type=int, default=100, help="workers to kill")
    parser.add_argument("--all", type=int, default=20,
                        help="times to kill everything at once and start it again with --resume")
    parser.add_argument("--readme", type=int, default=15,
                        help="servers and workers each to kill of the README's script")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--durability", choices=["journal", "fsync"], default="journal")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    return parser.parse_args()


class Job:
    """A command under fleetrun."""

    def __init__(self, folder: pathlib.Path, command, durability: str):
        self.folder = folder
        self._line = ["fleetrun", "--json", "--max_restart=50", "--server_num=2", "--worker_num=2",
                      f"--durability={durability}", *command]
        self._start()

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._line, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=open(self.folder / "job.out", "a"), stderr=open(self.folder / "job.err", "a"))

    def events(self):
        """What the launcher has told so far."""
        for line in (self.folder / "job.err").read_text().splitlines():
            if line.startswith("{") and line.endswith("}"):
                yield json.loads(line)

    def running(self) -> bool:
        """Whether the launcher has not ended."""
        return self._process.poll() is None

    def _pid(self, kind: str, index: int):
        """Of the process as it is now; None: there was none."""
        pids = [event["pid"] for event in self.events() if event.get("event") == "started"
                and (event["kind"], event["index"]) == (kind, index)]
        return pids[-1] if pids else None

    def kill(self, kind: str, index: int) -> bool:
        """Kills a process; False: it is not there."""
        pid = self._pid(kind, index)
        try:
            os.kill(pid, signal.SIGKILL)
        except (TypeError, ProcessLookupError):
            return False
        return True

    def kill_all(self) -> None:
        """Kills the launcher and all processes, and starts the same line again with --resume."""
        self._process.kill()
        for kind in ("server", "worker"):
            for index in range(2):
                self.kill(kind, index)
        self._process.wait()
        if "--resume" not in self._line:
            self._line.insert(1, "--resume")
        self._start()

    def wait(self, deadline: float) -> int:
        """The exit code; -1 if it had to be ended."""
        try:
            return self._process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait()
            return -1

    def log(self) -> str:
        """What all processes have said."""
        return "".join(f"\n== {path.name}\n{path.read_text()}"
                       for path in sorted(self.folder.glob("log/*log.*")))


def make_data(folder: pathlib.Path, chance: random.Random) -> None:
    """Files of equal length, so that every worker has as many batches, with an id on each line."""
    folder.mkdir()
    for number in range(FILES):
        ids = (str(chance.randrange(VOCABULARY)) for _ in range(LINES))
        (folder / f"part-{number}").write_text("\n".join(ids) + "\n")


def counted(folder: pathlib.Path) -> dict:
    """How often each id is in the files, by awk."""
    parts = sorted(str(part) for part in folder.iterdir())
    out = subprocess.run(["awk", "{n[$1] += 1} END {for (id in n) print id, n[id]}", *parts],
                         check=True, capture_output=True, text=True).stdout
    return {int(id): EPOCHS * int(n) for id, n in (line.split() for line in out.splitlines())}


def learned(model: pathlib.Path) -> dict:
    """What the saved model says, as a text that argosy has exported."""
    text = model.parent / "text"
    subprocess.run(["argosy", "ckpt", "export", str(model), "--to", str(text), "--format", "text"],
                   check=True, stdout=subprocess.DEVNULL)
    rows = (line.split() for line in (text / "counts.txt").read_text().splitlines()[1:])
    sums = {int(row[0]): -float(row[1]) for row in rows}
    every = [float(word) for word in (text / "all.txt").read_text().split()[-1:]]
    return {**sums, "all": -every[0]}


class Tally:
    """Of all jobs of one kind."""

    def __init__(self):
        self.jobs = self.servers = self.workers = self.all = self.lost = self.doubled = self.failed = 0

    def line(self, name: str) -> str:
        """A row of the table."""
        return (f"| {name} | {self.jobs} | {self.servers} | {self.workers} | {self.all} | "
                f"{self.lost:g} | {self.doubled:g} | {self.failed} |")


HEAD = """\
| job | jobs | servers killed | workers killed | all at once | ids lost | doubled | failed or hanging |
|---|---|---|---|---|---|---|---|"""


def kill_some(job: Job, chance: random.Random, wanted: list, tally: Tally) -> None:
    """Kills one process after another until there is none left to kill, or the job has ended."""
    while wanted and job.running():
        time.sleep(chance.uniform(0.2, 1.2))
        kind = wanted[-1]
        if not job.running():
            return
        if kind == "all":
            job.kill_all()
            tally.all += 1
        elif not job.kill(kind, chance.randrange(2)):
            continue
        elif kind == "server":
            tally.servers += 1
        else:
            tally.workers += 1
        wanted.pop()


def wanted_kills(chance: random.Random, *left: int) -> list:
    """Of servers, of workers and of all, for one job in a random order; `left` are left to do."""
    kinds = [kind for kind, most, n in zip(("server", "worker", "all"), MOST_PER_JOB, left)
             for _ in range(min(most, n))]
    chance.shuffle(kinds)
    return kinds


def count_once(args, folder: pathlib.Path, mode: str, chance: random.Random, tally: Tally,
               wanted: list) -> bool:
    """One job of counts.py; whether all is well."""
    make_data(folder / "data", chance)
    job = Job(folder, [str(HERE / "counts.py"), "--mode", mode, "--epochs", str(EPOCHS)],
              args.durability)
    deadline = time.monotonic() + DEADLINE
    tally.jobs += 1
    kill_some(job, chance, wanted, tally)
    code = job.wait(deadline)
    if code != 0:
        tally.failed += 1
        print(f"{mode}: {'hangs' if code == -1 else f'exit code {code}'}: {folder}", flush=True)
        return False
    expected = counted(folder / "data")
    expected["all"] = sum(expected.values())
    found = learned(folder / "model")
    lost = sum(max(0, n - found.get(id, 0)) for id, n in expected.items() if id != "all")
    doubled = sum(max(0, found.get(id, 0) - n) for id, n in expected.items() if id != "all")
    tally.lost += lost
    tally.doubled += doubled
    if found == expected:
        return True
    print(f"{mode}: rows: {lost:g} lost, {doubled:g} doubled; dense {found['all']:g} of "
          f"{expected['all']}: {folder}", flush=True)
    tally.failed += found["all"] != expected["all"]
    return False


def readme_once(args, folder: pathlib.Path, chance: random.Random, tally: Tally,
                wanted: list) -> bool:
    """One job of the README's script, slowed down; whether all is well."""
    readme = (HERE.parents[1] / "README.md").read_text()
    script = re.search(r"```python train.py\n(.*?)```", readme, re.S).group(1)
    loop = "    for _ in range(100):\n"
    assert loop in script
    (folder / "train.py").write_text(script.replace(loop, """\
    import time
    for step in range(100):
        time.sleep(0.1 * (step >= fleet.last_step()))
"""))
    job = Job(folder, ["train.py"], args.durability)
    deadline = time.monotonic() + DEADLINE
    tally.jobs += 1
    kill_some(job, chance, wanted, tally)
    code = job.wait(deadline)
    losses = [float(loss) for loss in re.findall(r"worker \d: loss ([0-9.]+)", job.log())]
    if code == 0 and len(losses) >= 2 and all(0.9 < loss < 1.1 for loss in losses):
        return True
    tally.failed += 1
    print(f"README: {'hangs' if code == -1 else f'exit code {code}'}, losses {losses}: {folder}",
          flush=True)
    return False


def run(args, name: str, kills: tuple, once) -> Tally:
    """Jobs of one kind until so many servers and workers are killed."""
    tally, chance = Tally(), random.Random(f"{args.seed} {name}")
    while (tally.servers, tally.workers, tally.all) != kills:
        before = tally.servers, tally.workers, tally.all
        folder = pathlib.Path(tempfile.mkdtemp(prefix=f"argosy-kills-{name}-"))
        begin = time.monotonic()
        wanted = wanted_kills(chance, *(n - done for n, done in zip(kills, before)))
        well = once(folder, chance, tally, wanted)
        print(f"{name}: job {tally.jobs}: {tally.servers - before[0]} servers and "
              f"{tally.workers - before[1]} workers killed, "
              f"{'everything too, ' * (tally.all - before[2])}{time.monotonic() - begin:.0f} s"
              f"{'' if well else ', NOT WELL'}", flush=True)
        if well:
            shutil.rmtree(folder)
        elif tally.jobs >= 3 and tally.failed == tally.jobs:
            break  # nothing works
    return tally


def main() -> int:
    """Runs all, prints and reports."""
    args = parse_args()
    print(f"seed {args.seed}", flush=True)
    share = len(args.modes)
    tallies = {}
    for at, mode in enumerate(args.modes):
        kills = tuple((n + at) // share for n in (args.servers, args.workers, args.all))
        tallies[mode] = run(args, mode, kills,
                            lambda folder, *rest, mode=mode: count_once(args, folder, mode, *rest))
    if args.readme:
        tallies["README"] = run(args, "README", (args.readme, args.readme, 0),
                                lambda folder, *rest: readme_once(args, folder, *rest))
    table = "\n".join([HEAD] + [tally.line(name) for name, tally in tallies.items()])
    print(table)
    return int(any(t.lost or t.doubled or t.failed for t in tallies.values()))


if __name__ == "__main__":
    sys.exit(main())
