"""Data sets of images, read from the folder ARGOSY_DATA or generated; nothing is downloaded."""

import functools
from typing import Any, Callable, List, Optional, Sequence, Tuple

import numpy as np

from argosy import _core, samples
from argosy.io import Dataset
from argosy.vision import _backend, transforms

__all__ = ["MNIST"]


class MNIST(Dataset):
    """Handwritten digits: an image and the digit as int64[1].

    With the backend cv2 images are f32[28, 28] from 0 to 255; with pil they are Pillow's, or uint8
    arrays where that is not installed. The backend is that of the moment when this is made.
    """

    def __init__(self, image_path: Optional[str] = None, label_path: Optional[str] = None,
                 mode: str = "train", transform: Optional[Callable] = None, download: bool = True,
                 backend: Optional[str] = None):
        if mode.lower() not in ("train", "test"):
            raise ValueError(f"mode is '{mode}', expected train or test")
        if (image_path is None) != (label_path is None):
            raise ValueError("image_path and label_path go together, only one is given")
        self.mode = mode.lower()
        self.transform = transform
        self.backend = _backend.get_image_backend() if backend is None else backend
        if self.backend not in ("pil", "cv2"):
            raise ValueError(f"backend is '{self.backend}', expected pil or cv2")
        self.images, self.labels = (_pixels(self.mode, _core.data_folder("mnist"))
                                    if image_path is None else _read(image_path, label_path))
        self._pillow = _backend.pillow() if self.backend == "pil" else None
        if self.backend == "pil" and self._pillow is None:
            _backend.say_that_pillow_is_missing()

    def __getitem__(self, index: int) -> Tuple[Any, np.ndarray]:
        image: Any = self.images[index]
        if self._pillow is not None:
            image = self._pillow.fromarray(image, mode="L")
        elif self.backend == "cv2":
            image = image.astype(np.float32)
        if self.transform is not None:
            image = self.transform(image)
        return image, self.labels[index]

    def __len__(self) -> int:
        return len(self.labels)

    def _take(self, indices: Sequence[int]) -> Optional[List[np.ndarray]]:
        if self._pillow is not None and self.transform is None:
            return None  # Pillow's images are no batch
        images = self.images[indices]
        if self.backend == "cv2":
            images = images.astype(np.float32)
        if self.transform is not None:
            images = transforms.of_all(self.transform, images)
        return None if images is None else [images, self.labels[indices]]

    def __getstate__(self) -> dict:
        return dict(self.__dict__, _pillow=None)

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        self._pillow = _backend.pillow() if self.backend == "pil" else None


@functools.lru_cache(maxsize=2)
def _pixels(part: str, folder: str) -> Tuple[np.ndarray, np.ndarray]:
    scaled, labels = samples.mnist(part)
    return np.rint(scaled * 255).astype(np.uint8).reshape(-1, 28, 28), labels


def _read(image_path: str, label_path: str) -> Tuple[np.ndarray, np.ndarray]:
    images, labels = _core.read_idx(image_path), _core.read_idx(label_path)
    if images.ndim != 3 or labels.shape != (len(images),):
        raise ValueError(f"{image_path} has shape {list(images.shape)} and {label_path} "
                         f"{list(labels.shape)}, expected images and a label for each")
    return images, labels.astype(np.int64).reshape(-1, 1)
