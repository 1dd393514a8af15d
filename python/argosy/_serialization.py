"""State dicts in files. Nothing in a file is executed when it is read."""

import hashlib
import json
import os
import struct
from typing import Any

import numpy as np

from argosy import _core
from argosy._apply import Tensor

_MAGIC = b"ARGOSYSD"
_HEADER = struct.Struct("<8sIQ")  # magic, version, bytes of the index
_VERSION = 1


def save(obj: Any, path, protocol: int = 4, **options) -> None:
    """Writes dicts, lists, numbers, texts, arrays and Tensors to a file, in one piece or not at all.
    Tensors that hold NaN or infinity are refused with DataError; arrays may hold them."""
    if options:
        raise _core.ConfigError(f"save: no option {', '.join(options)}")
    arrays: list = []
    index = json.dumps(_described(obj, arrays, "the object"), ensure_ascii=False).encode()
    path = os.fspath(path)
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    digest = hashlib.sha256()
    part = f"{path}.{os.getpid()}.part"
    try:
        with open(part, "wb") as file:
            for piece in (_HEADER.pack(_MAGIC, _VERSION, len(index)), index, *map(_bytes, arrays)):
                digest.update(piece)
                file.write(piece)
            file.write(digest.digest())
        os.replace(part, path)
    except BaseException:
        if os.path.exists(part):
            os.remove(part)
        raise


def load(path, return_numpy: bool = False, **options) -> Any:
    """Reads what save wrote."""
    if options:
        raise _core.ConfigError(f"load: no option {', '.join(options)}")
    with open(path, "rb") as file:
        data = file.read()
    size = hashlib.sha256().digest_size
    if len(data) < _HEADER.size + size or data[:8] != _MAGIC:
        raise _core.DataError(f"{path}: not a file that argosy.save wrote")
    if hashlib.sha256(memoryview(data)[:-size]).digest() != data[-size:]:
        raise _core.DataError(f"{path}: damaged, its checksum does not fit")
    _, version, length = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise _core.DataError(f"{path}: version {version}, expected {_VERSION}")
    start = _HEADER.size + length
    index = json.loads(data[_HEADER.size:start].decode())
    return _restored(index, memoryview(data)[start:-size], return_numpy)


def _bytes(array: np.ndarray):
    return memoryview(np.ascontiguousarray(array)).cast("B") if array.size else b""


def _described(value: Any, arrays: list, where: str) -> Any:
    if isinstance(value, (Tensor, np.ndarray)):
        array = np.asarray(value)
        if array.dtype.kind not in "fiub":
            raise _core.ConfigError(f"save: {where} is an array of {array.dtype}")
        if isinstance(value, Tensor) and array.dtype.kind == "f" and not np.isfinite(array).all():
            raise _core.DataError(f"save: {where} holds NaN or infinity; an array may, a Tensor of "
                                  "a model may not")
        at = sum(before.nbytes for before in arrays)
        arrays.append(array)
        shape = value.shape if isinstance(value, Tensor) else array.shape
        return {"array": [array.dtype.str, list(shape), at], "tensor": isinstance(value, Tensor)}
    if isinstance(value, dict):
        return {"dict": [[_described(key, arrays, where), _described(item, arrays, f"{where}[{key!r}]")]
                         for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {kind: [_described(item, arrays, f"{where}[{i}]") for i, item in enumerate(value)]}
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise _core.ConfigError(f"save: {where} is a {type(value).__name__}, expected numbers, texts, "
                            "arrays, Tensors, and lists or dicts of them")


def _restored(value: Any, data: memoryview, as_numpy: bool) -> Any:
    if not isinstance(value, dict):
        return value
    if "array" in value:
        dtype, shape, at = value["array"]
        count = int(np.prod(shape))
        array = np.frombuffer(data, dtype, count, at).reshape(shape).copy()
        return Tensor(array) if value["tensor"] and not as_numpy else array
    if "dict" in value:
        return {_restored(key, data, as_numpy): _restored(item, data, as_numpy)
                for key, item in value["dict"]}
    if "tuple" in value:
        return tuple(_restored(item, data, as_numpy) for item in value["tuple"])
    return [_restored(item, data, as_numpy) for item in value["list"]]
