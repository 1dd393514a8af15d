"""The wheels, installed in a virtual environment of their own outside of the source tree."""

import os
import pathlib
import shutil
import site
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = """
import os, sys
import argosy
print("role", os.environ["TRAINING_ROLE"], "of", sys.executable, argosy.__file__)
"""


def clean_environment():
    """As a user has it: nothing that points into the build folder."""
    hidden = ("PYTHONPATH", "PYTHONPYCACHEPREFIX", "ARGOSY_BIN", "ARGOSY_PYTHON")
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    build = os.environ.get("ARGOSY_BIN", "")
    env["PATH"] = os.pathsep.join(folder for folder in env["PATH"].split(os.pathsep)
                                  if folder != build)
    return env


def run(*command, **options):
    """The output of a command that must end well."""
    done = subprocess.run([str(part) for part in command], env=clean_environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, **options)
    assert done.returncode == 0, f"{command}:\n{done.stdout}"
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A virtual environment with both wheels; NumPy and the like are those of the tests."""
    folder = tmp_path_factory.mktemp("wheels")
    build = pathlib.Path(os.environ["ARGOSY_BIN"]).parent
    wheels = folder / "wheels"
    run(SOURCE / "dev" / "wheels.sh", build, wheels)
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    packages = next((venv / "lib").iterdir()) / "site-packages"
    (packages / "tests.pth").write_text("\n".join(site.getsitepackages()))
    names = sorted(wheels.glob("*.whl"))
    assert len(names) == 2
    run(sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "--quiet",
        "--no-deps", "--no-index", "--ignore-installed", *names)
    yield venv
    shutil.rmtree(folder)


def test_packages_are_imported_from_where_they_were_installed(environment, tmp_path):
    out = run(environment / "bin" / "python", "-c",
              "import argosy, paddle; print(argosy.__file__, paddle.__file__)", cwd=tmp_path)
    ours, theirs = out.split()
    assert ours.startswith(str(environment)) and theirs.startswith(str(environment))


def test_fleetrun_runs_scripts_with_the_python_it_is_installed_beside(environment, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    run(environment / "bin" / "fleetrun", "--server_num=1", "--worker_num=1", "script.py",
        cwd=tmp_path)
    for role, log in (("PSERVER", "serverlog.0"), ("TRAINER", "workerlog.0")):
        text = (tmp_path / "log" / log).read_text()
        assert f"role {role} of {environment}/bin/python" in text
        assert f" {environment}/lib" in text


def test_programs_find_models_and_tools_of_the_environment(environment, tmp_path):
    share = environment / "share" / "argosy"
    assert (share / "models" / "rank" / "dnn" / "config.yaml").is_file()
    out = run(environment / "bin" / "python", share / "tools" / "trainer.py", "--help",
              cwd=tmp_path)
    assert "argosy" in out


def test_a_launch_module_hands_over_to_the_installed_fleetrun(environment, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    run(environment / "bin" / "python", "-m", "paddle.distributed.launch_ps", "--start_port", "0",
        "--worker_num", "1", "--server_num", "1", "script.py", cwd=tmp_path)
    assert f"of {environment}/bin/python" in (tmp_path / "logs" / "workerlog.0").read_text()


def test_an_example_trains_with_a_server_where_the_wheels_are(environment, tmp_path):
    shutil.copy(SOURCE / "examples" / "python" / "ctr.py", tmp_path)
    env = dict(clean_environment(), PATH=f"{environment}/bin{os.pathsep}{os.environ['PATH']}")
    done = subprocess.run(["fleetrun", "--server_num=1", "--worker_num=1", "ctr.py", "--rows=20000",
                           "--epochs=1"], cwd=tmp_path, env=env, text=True, timeout=200,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    log = (tmp_path / "log" / "workerlog.0").read_text()
    assert done.returncode == 0, done.stdout + log
    figure, value = log.splitlines()[-1].split("\t")
    assert figure == "test auc" and float(value) > 0.55
