"""Images and their transforms."""

import os

import numpy as np
import pytest

import paddle
from argosy import _mode
from argosy.vision import _backend
from paddle.vision import transforms


@pytest.fixture(autouse=True)
def arrays(monkeypatch):
    """Static mode, small generated data, and the backend of before."""
    monkeypatch.delenv("ARGOSY_DATA", raising=False)
    _mode.enable_static()
    before = paddle.vision.get_image_backend()
    yield
    paddle.vision.set_image_backend(before)
    _mode.disable_static()


def without_pillow(monkeypatch):
    monkeypatch.setattr(_backend, "pillow", lambda: None)


def test_images_of_cv2_are_raw_floats():
    paddle.vision.set_image_backend("cv2")
    data = paddle.vision.datasets.MNIST(mode="test")
    paddle.vision.set_image_backend("pil")  # too late for this one
    image, label = data[3]
    assert image.shape == (28, 28) and image.dtype == np.float32 and image.max() > 100
    assert np.array_equal(image, np.rint(image)) and label.shape == (1,) and label.dtype == np.int64
    batch = next(iter(paddle.io.DataLoader(data, batch_size=4)))
    assert batch[0].shape == (4, 28, 28) and np.array_equal(batch[0][3], image)
    with pytest.raises(ValueError, match="expected one of: pil, cv2, tensor"):
        paddle.vision.set_image_backend("gif")


def test_without_pillow_its_images_are_bytes(monkeypatch, capfd):
    without_pillow(monkeypatch)
    monkeypatch.setattr(_backend, "_said", False)
    data = paddle.vision.datasets.MNIST(mode="test")
    assert data[0][0].dtype == np.uint8 and "Pillow is not installed" in capfd.readouterr().err
    with pytest.raises(ImportError, match="Resize needs Pillow"):
        transforms.Resize(14)


@pytest.mark.parametrize("transform", [
    transforms.ToTensor(),
    transforms.Normalize(mean=[127.5], std=[127.5], data_format="CHW"),
    transforms.Compose([transforms.Transpose(), transforms.Normalize(mean=127.5, std=127.5)]),
    transforms.Compose([transforms.ToTensor(), transforms.Normalize(mean=[0.5], std=[0.5])]),
], ids=["to_tensor", "normalize", "transpose", "compose"])
@pytest.mark.parametrize("backend", ["pil", "cv2"])
def test_a_batch_at_once_is_the_batch_of_single_images(transform, backend, monkeypatch):
    without_pillow(monkeypatch)
    data = paddle.vision.datasets.MNIST(mode="test", transform=transform, backend=backend)
    assert data._take([1, 5]) is not None
    at_once = next(iter(paddle.io.DataLoader(data, batch_size=8)))[0]
    single = next(iter(paddle.io.DataLoader(data, batch_size=8,
                                            collate_fn=lambda rows: np.stack([r[0]
                                                                              for r in rows]))))
    assert at_once.shape == (8, 1, 28, 28) and at_once.dtype == single.dtype == np.float32
    assert np.array_equal(at_once, single)


def test_bytes_are_scaled_and_floats_are_not(monkeypatch):
    image = np.full([2, 2], 255, np.uint8)
    assert transforms.ToTensor()(image).max() == 1
    assert transforms.ToTensor()(image.astype(np.float32)).max() == 255
    assert transforms.Normalize(mean=[127.5], std=[127.5])(image).tolist() == [[[1, 1], [1, 1]]]


def test_own_transforms_get_single_images():
    seen = []
    data = paddle.vision.datasets.MNIST(mode="test", backend="cv2",
                                        transform=lambda image: seen.append(1) or image / 255)
    batch = next(iter(paddle.io.DataLoader(data, batch_size=4, use_buffer_reader=False)))
    assert batch[0].max() <= 1 and len(seen) == 4


@pytest.mark.skipif("ARGOSY_DATA" not in os.environ,
                    reason="ARGOSY_DATA names no folder of real data sets")
def test_files_by_name():
    folder = os.path.join(REAL, "mnist")
    data = paddle.vision.datasets.MNIST(os.path.join(folder, "t10k-images-idx3-ubyte.gz"),
                                        os.path.join(folder, "t10k-labels-idx1-ubyte.gz"),
                                        mode="test", backend="cv2")
    assert len(data) == 10_000 and data[0][1].tolist() == [7]


REAL = os.environ.get("ARGOSY_DATA", "")
