"""Hands a tool's command line over to the program argosy."""

import os
import shutil
import sys

_BESIDE = ("../../../bin", "../build/bin")  # installed in PREFIX/share/argosy/tools; in the source tree


def find_argosy():
    """The program: ARGOSY, the one that these tools came with, or the one in PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    candidates = [os.environ.get("ARGOSY", "")] + [os.path.join(here, folder, "argosy") for folder in _BESIDE]
    for path in candidates + [shutil.which("argosy") or ""]:
        if os.access(path, os.X_OK):
            return os.path.normpath(path)
    sys.exit("there is no program argosy beside these tools or in PATH, expected ARGOSY to name it")


def run(verb):
    """Becomes `argosy VERB` with the rest of this command line."""
    program = find_argosy()
    os.execv(program, [program, verb] + sys.argv[1:])
