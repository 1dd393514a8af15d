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


def is_compiled_with_custom_device(device_type: str) -> bool:
    """Whether there are devices of a kind that a plug-in brings: there are none."""
    return False


def is_compiled_with_xpu() -> bool:
    """Whether XPUPlace can be had: it cannot."""
    return False


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
    """A device by number; there are only emulated ones, which ARGOSY_EMULATED_DEVICES makes. In
    ranks that a launcher has started without devices (--nproc_per_node) it is the processor."""

    def __init__(self, id: int = 0):
        _need_device(int(id))
        self._id = int(id)
        how = "the CPU of a rank" if _is_cpu_rank() else "emulated: the CPU kernels run"
        self._name = f"gpu:{self._id}, {how}"

    def get_device_id(self) -> int:
        """Its number."""
        return self._id


class CUDAPinnedPlace(_Place):
    """Memory that a device reads; that of the processor, as devices are emulated."""

    _name = "gpu_pinned, emulated: memory of the CPU"

    def __init__(self) -> None:
        _need_device(0)


def _is_cpu_rank() -> bool:
    """Whether a launcher was asked for ranks and had no devices for them."""
    return device_count() == 0 and os.environ.get("PADDLE_DISTRI_BACKEND") == "gloo"


def _need_device(number: int) -> None:
    count = device_count()
    if _is_cpu_rank():
        return _say("this rank was started without a device: it computes on the CPU, also where "
                    "the script names one")
    if not 0 <= number < count:
        has = "this machine has no CUDA device"
        if count:
            has = f"{EMULATED}={count} makes gpu:0 to gpu:{count - 1}"
        raise ValueError(f"there is no device gpu:{number}: {has}; {EMULATED}=N makes N devices "
                         "that run the CPU kernels, or use CPUPlace()")
    _say(f"{EMULATED}={count}: devices are emulated on the CPU")


def _say(what: str) -> None:
    """Once in a process."""
    global _said
    if not _said:
        _said = True
        print(f"argosy: {what}", file=sys.stderr, flush=True)


def set_device(device: str) -> _Place:
    """Chooses "cpu", "gpu:N" or "gpu", the one that a launcher gave, for what follows."""
    global _device
    found = re.fullmatch(r"cpu|gpu(?::(\d+))?", device)
    if not found:
        raise ValueError(f"the device is '{device}', expected cpu, gpu or gpu:N")
    first = (os.environ.get("FLAGS_selected_gpus") or "0").split(",")[0]
    place = CPUPlace() if device == "cpu" else CUDAPlace(int(found.group(1) or first))
    _device = "cpu" if device == "cpu" else f"gpu:{place.get_device_id()}"
    return place


def get_device() -> str:
    """What set_device has chosen; cpu at first."""
    return _device
