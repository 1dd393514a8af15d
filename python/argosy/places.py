"""Where programs run: this version has CPU kernels, and devices that are emulated by them."""

import os
import re
import sys

EMULATED = "ARGOSY_EMULATED_DEVICES"
_said = False
_device = "cpu"


def device_count() -> int:
    """Devices that CUDAPlace can name: as many as ARGOSY_EMULATED_DEVICES says."""
    text = os.environ.get(EMULATED, "") or "0"
    if not text.isdigit():
        raise ValueError(f"{EMULATED} is '{text}', expected a number of devices")
    return int(text)


def is_compiled_with_cuda() -> bool:
    """Whether CUDAPlace can be had."""
    return device_count() > 0


class _Place:
    _name = ""

    def __repr__(self) -> str:
        return f"Place({self._name})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and repr(other) == repr(self)

    def __hash__(self) -> int:
        return hash(repr(self))


class CPUPlace(_Place):
    """The processor."""

    _name = "cpu"


class CUDAPlace(_Place):
    """A device by number; there are only emulated ones, which ARGOSY_EMULATED_DEVICES makes."""

    def __init__(self, id: int = 0):
        _need_device(int(id))
        self._id = int(id)
        self._name = f"gpu:{self._id}, emulated: the CPU kernels run"

    def get_device_id(self) -> int:
        """Its number."""
        return self._id


class CUDAPinnedPlace(_Place):
    """Memory that a device reads; that of the processor, as devices are emulated."""

    _name = "gpu_pinned, emulated: memory of the CPU"

    def __init__(self) -> None:
        _need_device(0)


def _need_device(number: int) -> None:
    count = device_count()
    if not 0 <= number < count:
        has = "this machine has no CUDA device"
        if count:
            has = f"{EMULATED}={count} makes gpu:0 to gpu:{count - 1}"
        raise ValueError(f"there is no device gpu:{number}: {has}; {EMULATED}=N makes N devices "
                         "that run the CPU kernels, or use CPUPlace()")
    global _said
    if not _said:
        _said = True
        print(f"argosy: {EMULATED}={count}: devices are emulated, the CPU kernels run",
              file=sys.stderr, flush=True)


def set_device(device: str) -> _Place:
    """Chooses "cpu", "gpu" or "gpu:N" for what follows."""
    global _device
    found = re.fullmatch(r"cpu|gpu(?::(\d+))?", device)
    if not found:
        raise ValueError(f"the device is '{device}', expected cpu, gpu or gpu:N")
    place = CPUPlace() if device == "cpu" else CUDAPlace(int(found.group(1) or 0))
    _device = "cpu" if device == "cpu" else f"gpu:{place.get_device_id()}"
    return place


def get_device() -> str:
    """What set_device has chosen; cpu at first."""
    return _device
