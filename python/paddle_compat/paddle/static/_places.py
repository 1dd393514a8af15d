"""Lists of places."""

from typing import Any, List, Optional, Sequence

import paddle


def cpu_places(device_count: Optional[int] = None) -> List[Any]:
    """So many times this processor; one without a number."""
    return [paddle.CPUPlace() for _ in range(device_count or 1)]


def cuda_places(device_ids: Optional[Sequence[int]] = None) -> List[Any]:
    """These devices; the first one without a list."""
    return [paddle.CUDAPlace(number) for number in (device_ids if device_ids is not None else [0])]
