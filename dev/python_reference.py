#!/usr/bin/env python3
"""Writes docs/reference/python.md: the public names of argosy, and which names of paddle there are.

  PYTHONPATH=build/python build/venv/bin/python dev/python_reference.py [--check]

--check writes nothing; exit code 1 if the file is not what would be written.
"""

import argparse
import importlib
import inspect
import pathlib
import pkgutil
import sys
import textwrap

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "reference" / "python.md"
WIDTH = 118
LAUNCHERS = ("launch", "launch_ps")  # programs, run by `python -m`

HEAD = """\
# Python

The public names of the package `argosy`, module by module, and those of the companion package `argosy-paddle`. Generated
from the docstrings by `dev/python_reference.py`; `help(name)` says more. How the packages are built:
[decision 11](../decisions/0011-python.md). First steps: [tutorials](../tutorials/README.md).
"""

PADDLE = """\
## Names of paddle

What scripts that were written for Paddle may import. The version that is followed is {version}. A name that is not
listed raises an AttributeError that names the nearest ones; an argument that argosy does not have is refused unless
it asks for the default. `python -m paddle.distributed.launch`, `paddle.distributed.fleet.launch` and
`paddle.distributed.launch_ps` start jobs.
"""


def public_modules(package):
    """The package and all modules below it that a user may import, by name."""
    root = importlib.import_module(package)
    found = [root]
    for info in pkgutil.walk_packages(root.__path__, package + "."):
        parts = info.name.split(".")
        hidden = any(part.startswith(("_", "libargosy_")) for part in parts)
        if not hidden and parts[-1] not in LAUNCHERS:
            module = importlib.import_module(info.name)
            found += [module] if module.__name__ == info.name else []  # else a second name of one
    return sorted(found, key=lambda module: module.__name__)


def public_names(module):
    """Names and values that a module gives out: what it lists, else what it defines."""
    listed = getattr(module, "__all__", None)
    names = listed or [name for name in vars(module) if not name.startswith("_")]
    values = {name: getattr(module, name) for name in sorted(set(names))}
    return {name: value for name, value in values.items() if not inspect.ismodule(value)
            and (listed or getattr(value, "__module__", module.__name__) == module.__name__)}


def new_names(module):
    """Without those that the package above gives out too."""
    above = sys.modules.get(module.__name__.rpartition(".")[0])
    return {name: value for name, value in public_names(module).items()
            if getattr(above, name, None) is not value}


def first_words(value):
    """The first paragraph of its docstring; of a constant what it is."""
    documented = inspect.ismodule(value) or callable(value)
    text = (value.__doc__ or "").strip() if documented else f"`{value!r}`"
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


def module_lines(module):
    """The section of a module of argosy."""
    names = new_names(module)
    if not names:
        return []
    rows = [f"| `{name}` | {first_words(value)} |" for name, value in names.items()]
    return [f"## {module.__name__}", "", first_words(module), "", "| name | |", "|---|---|", *rows, ""]


def paddle_lines(module):
    """The section of a module of paddle."""
    names = sorted({name for name in dir(module) if name[0] != "_"})
    if not names:
        return []
    text = ", ".join(f"`{name}`" for name in names)
    return [f"### {module.__name__}", "", *textwrap.wrap(text, WIDTH, break_on_hyphens=False), ""]


def page():
    """The whole text."""
    lines = [HEAD]
    for module in public_modules("argosy"):
        lines += module_lines(module)
    lines += [PADDLE.format(version=importlib.import_module("paddle").__version__.split("+")[0])]
    for package in ("paddle", "fleetx"):
        for module in public_modules(package):
            lines += paddle_lines(module)
    return "\n".join(lines).rstrip() + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    text = page()
    if not parser.parse_args().check:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        print(f"{PAGE.name} is not up to date; run dev/python_reference.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
