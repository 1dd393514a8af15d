"""Images: data sets and what is done to them."""

from argosy.vision import datasets, transforms
from argosy.vision._backend import get_image_backend, set_image_backend

__all__ = ["datasets", "get_image_backend", "set_image_backend", "transforms"]
