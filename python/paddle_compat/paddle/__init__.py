"""The import name `paddle` over argosy, for scripts that were written for PaddlePaddle."""

import os as _os
import re as _re
import sys as _sys


def _refuse_beside_paddlepaddle() -> None:
    # By the names of folders: importlib.metadata would take longer than the rest of this import.
    installed = _re.compile(r"(paddlepaddle(?:[-_]\w+)?)-([\w.+]+?)(?:-py[\d.]+)?\.(?:dist|egg)-info")
    for folder in _sys.path:
        try:
            names = _os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            found = name.startswith("paddlepaddle") and installed.fullmatch(name)
            if found:
                raise ImportError(
                    f"this environment has {found.group(1)} {found.group(2)}, whose import name "
                    f"argosy-paddle also has; uninstall one of them, or use an environment "
                    f"without it")


_refuse_beside_paddlepaddle()

import argosy as _argosy  # noqa: E402
from argosy import _core  # noqa: E402
from paddle import _names  # noqa: E402

_core.add_package(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

# The version whose names and defaults are followed, and ours.
__version__ = f"2.6.2+argosy.{_argosy.__version__}"

__getattr__, __dir__ = _names.lazy(
    __name__,
    names={
        "batch": "argosy.reader:batch",
        "CPUPlace": "argosy.places:CPUPlace",
        "CUDAPlace": "argosy.places:CUDAPlace",
        "CUDAPinnedPlace": "argosy.places:CUDAPinnedPlace",
        "set_device": "argosy.places:set_device",
        "get_device": "argosy.places:get_device",
        "is_compiled_with_cuda": "argosy.places:is_compiled_with_cuda",
        "is_compiled_with_custom_device": "argosy.places:is_compiled_with_custom_device",
        "is_compiled_with_xpu": "argosy.places:is_compiled_with_xpu",
        "DataParallel": "argosy.fleet:DataParallel",
        "enable_static": "argosy._mode:enable_static",
        "disable_static": "argosy._mode:disable_static",
        "in_dynamic_mode": "argosy._mode:in_dynamic_mode",
    },
    sources=["paddle._tensor_api"],
)
