"""Nothing outlives a script, however it ends."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap

import pytest

from test_io_workers import wait_for

PIPE = """
    import argosy
    from argosy import dataset, static
    argosy.enable_static()
    x, y = static.data("x", [-1, 2], "float32"), static.data("y", [-1, 1], "int64")
    loss = argosy.mean(static.nn.fc(x, 1))
    argosy.optimizer.SGD(learning_rate=0.1).minimize(loss)
    exe = static.Executor()
    exe.run(static.default_startup_program())
    data = dataset.QueueDataset()
    data.init(batch_size=2, use_var=[x, y],
              pipe_command="setsid sh -c 'touch daemon; exec sleep 600' & touch command; "
                           "cat | sleep 600")
    data.set_filelist(["part-0"])
    exe.train_from_dataset(static.default_main_program(), data)
"""

SPAWN = """
    import os
    import sys
    import time
    import paddle.distributed as dist

    def work():
        open("rank" + os.environ["PADDLE_TRAINER_ID"], "w").close()
        while len(sys.argv) < 2 or not os.path.exists("go"):
            time.sleep(0.01)
        open("done" + os.environ["PADDLE_TRAINER_ID"], "w").close()

    if __name__ == "__main__":
        dist.spawn(work, nprocs=2, JOIN)
"""


class Script:
    """A script that runs in a folder, and all that it has started."""

    def __init__(self, folder, text):
        (folder / "script.py").write_text(textwrap.dedent(text))
        self.folder, self.variable = folder, f"ARGOSY_ORPHANS={folder}"
        self.process = subprocess.Popen([sys.executable, "script.py"], cwd=folder,
                                        env=dict(os.environ, ARGOSY_ORPHANS=str(folder)))

    def wait_for_files(self, *names):
        wait_for(lambda: all((self.folder / name).exists() for name in names))

    def left(self):
        """Processes that still live."""
        found = []
        for environment in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if self.variable.encode() in environment.read_bytes().split(b"\0"):
                    found.append(int(environment.parent.name))
            except OSError:
                pass  # it has ended meanwhile
        return found

    def close(self):
        for process in self.left():
            os.kill(process, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def start(tmp_path):
    """Starts a script; what it leaves is killed."""
    scripts = []

    def begin(text):
        scripts.append(Script(tmp_path, text))
        return scripts[-1]

    yield begin
    for script in scripts:
        script.close()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_pipe_commands_end_with_a_script_that_is_killed(start, tmp_path, number):
    (tmp_path / "part-0").write_text("2 0.5 0.5 1 1\n")
    script = start(PIPE)
    script.wait_for_files("daemon", "command")
    os.kill(script.process.pid, number)
    script.process.wait()
    wait_for(lambda: not script.left())


def test_spawned_ranks_end_with_a_script_that_is_killed(start):
    script = start(SPAWN.replace("JOIN", "join=True"))
    script.wait_for_files("rank0", "rank1")
    script.process.kill()
    script.process.wait()
    wait_for(lambda: not script.left())


def test_a_script_waits_for_spawned_ranks_unless_they_are_daemons(start, tmp_path):
    script = start(SPAWN.replace("JOIN", "join=False").replace("len(sys.argv) < 2 or ", ""))
    script.wait_for_files("rank0", "rank1")
    (tmp_path / "go").touch()
    assert script.process.wait() == 0
    assert (tmp_path / "done0").exists() and (tmp_path / "done1").exists()
    wait_for(lambda: not script.left())
    (tmp_path / "go").unlink()
    script = start(SPAWN.replace("JOIN", "join=False, daemon=True"))
    assert script.process.wait() == 0
    wait_for(lambda: not script.left())
