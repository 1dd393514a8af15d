"""What images of data sets are: of Pillow, or arrays."""

import sys
from typing import Any, Optional

_BACKENDS = ("pil", "cv2", "tensor")
_backend = "pil"
_said = False


def set_image_backend(backend: str) -> None:
    """Chooses for data sets that are made from now on: "pil", or "cv2" and "tensor" for arrays."""
    if backend not in _BACKENDS:
        raise ValueError(f"the image backend is '{backend}', expected one of: "
                         f"{', '.join(_BACKENDS)}")
    global _backend
    _backend = backend


def get_image_backend() -> str:
    """What set_image_backend has chosen; pil at first."""
    return _backend


def pillow() -> Optional[Any]:
    """Pillow's Image module, or None where that is not installed."""
    try:
        from PIL import Image
    except ImportError:
        return None
    return Image


def say_that_pillow_is_missing() -> None:
    """One line: arrays stand in for Pillow's images."""
    global _said
    if not _said:
        _said = True
        print("argosy: Pillow is not installed: images of the backend 'pil' are uint8 arrays",
              file=sys.stderr, flush=True)
