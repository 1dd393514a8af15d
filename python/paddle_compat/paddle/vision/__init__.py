"""Images: data sets and what is done to them."""

from argosy.vision import get_image_backend, set_image_backend  # noqa: F401
from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)
