"""The package paddle: what its names lead to, and what is said where one is missing."""

import os
import subprocess
import sys
import textwrap

import pytest

import paddle


def run(code, **environment):
    """A script of its own: (exit code, output, errors)."""
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], text=True, timeout=100,
                          env=dict(os.environ, **environment), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr


def test_a_missing_name_is_named_with_the_nearest_that_exist():
    with pytest.raises(AttributeError,
                       match="paddle has no 'CPUPlcae' .* the nearest are: CPUPlace"):
        paddle.CPUPlcae
    with pytest.raises(AttributeError, match="paddle.io has no 'DataLoder' .* DataLoader"):
        paddle.io.DataLoder
    with pytest.raises(AttributeError,
                       match="paddle.device.cuda has no 'device_cuont' .* device_count"):
        paddle.device.cuda.device_cuont
    with pytest.raises(ImportError):
        from paddle.io import NoSuchThing  # noqa: F401
    assert not hasattr(paddle, "no_such_name")


def test_submodules_are_there_when_they_are_named():
    code, out, errors = run("""
        import sys
        import paddle
        print("paddle.vision" in sys.modules, "paddle.io" in sys.modules)
        paddle.vision.datasets.MNIST
        print("paddle.vision" in sys.modules)
    """)
    assert (code, out.split()) == (0, ["False", "False", "True"]), errors


def test_names_of_version_2_are_those_of_today():
    code, out, errors = run("""
        import paddle.v2 as paddle
        import paddle.v2.dataset.uci_housing
        shuffled = paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500)
        reader = paddle.batch(shuffled, batch_size=20)
        x, y = next(reader())[0]
        print(len(list(reader())), x.shape, y.shape)
    """, ARGOSY_DATA="")
    assert (code, out) == (0, "21 (13,) (1,)\n"), errors
    assert "generated prices" in errors


def test_importing_beside_a_real_paddlepaddle_is_refused(tmp_path):
    info = tmp_path / "paddlepaddle-2.6.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: paddlepaddle\nVersion: 2.6.2\n")
    code, _, errors = run("import paddle",
                          PYTHONPATH=f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    assert code == 1
    assert "ImportError: this environment has paddlepaddle 2.6.2" in errors.splitlines()[-1]


def test_a_device_needs_to_be_emulated():
    code, _, errors = run("import paddle; paddle.CUDAPlace(0)", ARGOSY_EMULATED_DEVICES="")
    assert code == 1 and "there is no device gpu:0: this machine has no CUDA device" in errors
    assert "ARGOSY_EMULATED_DEVICES=N" in errors
    code, out, errors = run("""
        import paddle
        count = paddle.device.cuda.device_count()
        print(paddle.CUDAPlace(1), paddle.is_compiled_with_cuda(), count)
        print(paddle.set_device("gpu:0"), paddle.get_device(), paddle.CPUPlace())
        paddle.CUDAPlace(2)
    """, ARGOSY_EMULATED_DEVICES="2")
    assert out == ("Place(gpu:1, emulated: the CPU kernels run) True 2\n"
                   "Place(gpu:0, emulated: the CPU kernels run) gpu:0 Place(cpu)\n")
    assert errors.splitlines()[0] == ("argosy: ARGOSY_EMULATED_DEVICES=2: devices are emulated "
                                      "on the CPU")
    assert code == 1 and "makes gpu:0 to gpu:1" in errors


def test_modes():
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    assert not paddle.in_dynamic_mode()
    paddle.disable_static()
    assert paddle.in_dynamic_mode()
    assert paddle.__version__.startswith("2.")


def test_every_name_that_is_listed_is_there():
    code, out, errors = run("""
        import importlib, pkgutil
        import fleetx, paddle
        for package in (paddle, fleetx):
            for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
                if not info.name.split(".")[-1].startswith(("_", "launch")):
                    module = importlib.import_module(info.name)
                    for name in {*dir(module), *getattr(module, "__all__", ())}:
                        getattr(module, name)
    """)
    assert code == 0, errors


def test_what_a_module_has_only_imported_is_not_listed():
    assert not {"Any", "Optional"} & set(dir(paddle.fluid.optimizer))
    assert "FtrlOptimizer" in dir(paddle.fluid.optimizer)
