"""Devices."""

from argosy.places import get_device, is_compiled_with_cuda, set_device
from paddle import _names

__getattr__, __dir__ = _names.lazy(__name__)


class cuda(_names.Namespace):
    """Devices by number."""

    @staticmethod
    def device_count() -> int:
        """How many there are."""
        from argosy.places import device_count
        return device_count()


__all__ = ["cuda", "get_device", "is_compiled_with_cuda", "set_device"]
