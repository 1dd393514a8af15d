"""Hands a command line over to one of argosy's programs. Also installed as argosy._programs."""

import os
import shutil
import sys

# From PREFIX/share/argosy/tools, the source tree, a build folder's package and a virtual environment's.
_BESIDE = ("../../../bin", "../build/bin", "../../bin", "../../../../bin")


def find_program(name):
    """Path of a program: what ARGOSY or FLEETRUN names, the one this file came with, or the one in PATH."""
    here = os.path.dirname(os.path.abspath(__file__))
    folders = [os.path.join(here, folder) for folder in _BESIDE] + [os.path.dirname(sys.executable)]
    candidates = [os.environ.get(name.upper(), "")] + [os.path.join(folder, name) for folder in folders]
    for path in candidates + [shutil.which(name) or ""]:
        if os.access(path, os.X_OK):
            return os.path.normpath(path)
    sys.exit(f"there is no program {name} beside {here} or in PATH, expected {name.upper()} to name it")


def run(verb, *settings):
    """Becomes `argosy VERB` with the rest of this command line, whose settings win over these."""
    program = find_program("argosy")
    given = [word for setting in settings for word in ("-o", setting)]
    os.execv(program, [program, verb] + given + sys.argv[1:])
