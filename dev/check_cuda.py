#!/usr/bin/env python3
"""Checks that objects nvcc has compiled hold code for each architecture.

  check_cuda.py FOLDER sm_80 sm_90 compute_90     every object below the folder

It reads the "fat binaries" itself, as cuobjdump does not come with every toolkit. A source without kernels has
empty ones, so kernels are known by the stubs that start them; such sources are listed. A file of
ops/on_device without kernels is an error.
"""

import pathlib
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
STUB = b"__device_stub__"  # in the name of the function that starts a kernel
KINDS = {1: "compute", 2: "sm"}  # PTX, code
HOST_ONLY = {"matmul"}  # of ops/on_device: cuBLAS has its kernel


def architectures(data):
    """The architectures in the bytes of an object: {"sm_80", "compute_90"}."""
    found = set()
    start = data.find(MAGIC)
    while start >= 0:
        header, size = struct.unpack_from("<HQ", data, start + 6)
        at, end = start + header, start + header + size
        while at < end:
            kind, entry, payload = struct.unpack_from("<H2xIQ", data, at)
            number, = struct.unpack_from("<I", data, at + 28)
            found.add(f"{KINDS.get(kind, kind)}_{number}")
            at += entry + payload
        start = data.find(MAGIC, end)
    return found


def main():
    folder, expected = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
    host, device, wrong = [], 0, []
    for path in sorted(folder.rglob("*.o")):
        name = path.name.split(".")[0]
        data = path.read_bytes()
        found = architectures(data) if STUB in data else set()
        if not found and ("on_device" not in path.parts or name in HOST_ONLY):
            host.append(name)
        elif not expected <= found:
            wrong.append(f"{path}: has code for {sorted(found) or 'nothing'}, expected {sorted(expected)}")
        else:
            device += 1
    if not device:
        wrong.append(f"{folder}: no object has device code")
    print("\n".join(wrong or [f"make cuda: {device} files have code for {', '.join(sorted(expected))}; "
                              f"without kernels: {', '.join(host)}"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
