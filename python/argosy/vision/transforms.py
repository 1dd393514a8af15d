"""What is done to images before training."""

import numbers
from typing import Any, Callable, Optional, Sequence, Tuple, Union

import numpy as np

__all__ = ["BaseTransform", "Compose", "Normalize", "Resize", "ToTensor", "Transpose"]


def _pixels(image: Any) -> np.ndarray:
    """An image of any kind as an array [height, width] or [height, width, channels]."""
    return image.numpy() if hasattr(image, "numpy") else np.asarray(image)


def of_all(transform: Any, images: np.ndarray) -> Optional[np.ndarray]:
    """The transform of each of [n, ...] at once; None where only its own function can say."""
    known = (Compose, Normalize, ToTensor, Transpose)
    return transform._of_all(images) if type(transform) in known else None


class BaseTransform:
    """A transform of an image: subclasses have _apply_image."""

    def __init__(self, keys: Optional[Sequence[str]] = None):
        if keys is not None and tuple(keys) != ("image",):
            raise ValueError(f"keys is {keys!r}, expected None: transforms change the image only")

    def __call__(self, image: Any) -> Any:
        return self._apply_image(image)

    def _apply_image(self, image: Any) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no _apply_image, which a transform "
                                  "needs")


class Compose:
    """Transforms, one after the other."""

    def __init__(self, transforms: Sequence[Callable]):
        self.transforms = list(transforms)

    def __call__(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image

    def _of_all(self, images: np.ndarray) -> Optional[np.ndarray]:
        found: Optional[np.ndarray] = images
        for transform in self.transforms:
            found = None if found is None else of_all(transform, found)
        return found


def _numbers(value: Any, name: str) -> np.ndarray:
    array = np.asarray([value] if isinstance(value, numbers.Number) else value, dtype=np.float32)
    if array.ndim != 1:
        raise ValueError(f"{name} is {value!r}, expected a number for each channel")
    return array


class Normalize(BaseTransform):
    """(image - mean) / std, channel by channel; the result is float32."""

    def __init__(self, mean: Any = 0.0, std: Any = 1.0, data_format: str = "CHW",
                 to_rgb: bool = False, keys: Optional[Sequence[str]] = None):
        super().__init__(keys)
        if data_format not in ("CHW", "HWC"):
            raise ValueError(f"data_format is '{data_format}', expected CHW or HWC")
        if to_rgb:
            raise ValueError("to_rgb=True is not supported: images of argosy are grey or RGB "
                             "already")
        ends = (-1, 1, 1) if data_format == "CHW" else (1, 1, -1)
        self.mean = _numbers(mean, "mean").reshape(ends)
        self.std = _numbers(std, "std").reshape(ends)

    def _apply_image(self, image: Any) -> np.ndarray:
        return self._of_all(_pixels(image)[None])[0]

    def _of_all(self, images: np.ndarray) -> np.ndarray:
        # A grey image without a channel gets one, as arithmetic with [channels, 1, 1] gives it.
        if images.ndim == 3:
            images = images[:, None]
        return (images.astype(np.float32) - self.mean) / self.std


class Transpose(BaseTransform):
    """Another order of the dimensions, (2, 0, 1) at first; grey images get a channel before."""

    def __init__(self, order: Sequence[int] = (2, 0, 1), keys: Optional[Sequence[str]] = None):
        super().__init__(keys)
        self.order = tuple(order)

    def _apply_image(self, image: Any) -> np.ndarray:
        return self._of_all(_pixels(image)[None])[0]

    def _of_all(self, images: np.ndarray) -> np.ndarray:
        if images.ndim == 3:
            images = images[..., None]
        return images.transpose((0,) + tuple(axis + 1 for axis in self.order))


class ToTensor(BaseTransform):
    """float32 with the channel first; bytes are scaled from 0..255 to 0..1."""

    def __init__(self, data_format: str = "CHW", keys: Optional[Sequence[str]] = None):
        super().__init__(keys)
        if data_format not in ("CHW", "HWC"):
            raise ValueError(f"data_format is '{data_format}', expected CHW or HWC")
        self.data_format = data_format

    def _apply_image(self, image: Any) -> np.ndarray:
        return self._of_all(_pixels(image)[None])[0]

    def _of_all(self, images: np.ndarray) -> np.ndarray:
        if images.ndim == 3:
            images = images[..., None]
        scaled = images.astype(np.float32)
        if images.dtype == np.uint8:
            scaled /= 255
        if self.data_format == "HWC":
            return scaled
        return np.ascontiguousarray(scaled.transpose(0, 3, 1, 2))


class Resize(BaseTransform):
    """Another size; it needs Pillow."""

    def __init__(self, size: Union[int, Tuple[int, int]], interpolation: str = "bilinear",
                 keys: Optional[Sequence[str]] = None):
        super().__init__(keys)
        from argosy.vision import _backend
        image = _backend.pillow()
        if image is None:
            raise ImportError("Resize needs Pillow, which is not installed: pip install pillow")
        kinds = {"nearest": image.NEAREST, "bilinear": image.BILINEAR, "bicubic": image.BICUBIC}
        if interpolation not in kinds:
            raise ValueError(f"interpolation is '{interpolation}', expected one of: "
                             f"{', '.join(kinds)}")
        self.size = size
        self._kind = kinds[interpolation]

    def _apply_image(self, image: Any) -> Any:
        from argosy.vision import _backend
        is_array = isinstance(image, np.ndarray)
        picture = _backend.pillow().fromarray(image) if is_array else image
        resized = picture.resize(self._target(picture.size), self._kind)
        return np.asarray(resized) if is_array else resized

    def _target(self, size: Tuple[int, int]) -> Tuple[int, int]:
        """(width, height); of a single number the shorter side."""
        if not isinstance(self.size, int):
            return self.size[1], self.size[0]
        width, height = size
        shorter = min(width, height)
        return width * self.size // shorter, height * self.size // shorter
