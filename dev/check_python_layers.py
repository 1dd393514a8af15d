#!/usr/bin/env python3
"""Checks who uses whose underscore names in the Python package: an attribute or a function that begins with one
underscore is known to the file that defines it, and to the files that the table below gives it to. What the files of
the package share has a name without an underscore, in a module with one. One line per violation; exit code 1 if
there is any.

  check_python_layers.py [--root DIR]     check a source tree (default: this one)
  check_python_layers.py --self-test      prove that it finds what it should find
"""

import argparse
import ast
import pathlib
import sys
import tempfile

PACKAGE = "python/argosy"

# Which file or folder (ending in /; "": all) may use which names of others.
ALLOWED = (
    # Text of a setting as the engine reads it: initializers, regularizers, clips and entries have it, as objects have
    # __str__, and scripts have no use for it.
    ("", "_text"),
    # A tensor that takes over the values of another one, for functions that change their argument.
    ("_math.py", "_take"),
    ("_shaping.py", "_take"),
    ("nn/functional.py", "_take"),
    # A fleet is one thing in a folder: the job, a script's strategy, dynamic ranks, the transpiler's programs.
    ("fleet/", "_all _collective _core _engine _initialised _leave _of_dynamic _of_ranks _pending _refuse_of_ranks"),
    ("static/_record.py", "_use"),  # a program that a fleet trains is run by it
    ("fleet/_fleet.py", "_adopt"),  # the ranks that distributed has met
    ("fleet/_fleet.py", "_parameter_list"),  # Paddle's name of an optimizer's attribute
    ("dataset.py", "_core"),  # instances are exchanged by the engine of a fleet
    ("static/_executor.py", "_program"),  # of Paddle's CompiledProgram
    ("nn/common.py", "_act"),  # of the BatchNorm of Paddle's fluid
    ("reader.py", "_by_workers"),  # a reader is the loop of a loader
)


def own_names(tree):
    """Names that a file defines: functions, classes, variables, attributes of self, and attributes that it sets by
    name."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and of_self(node):
            names.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            names.add(node.arg)
    return names


def of_self(node):
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def asks_by_name(node):
    """Is it getattr(x, "name"), or one of its kind?"""
    return (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            and node.func.id in ("getattr", "hasattr", "setattr") and len(node.args) > 1
            and isinstance(node.args[1], ast.Constant))


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def allowed(file, name):
    folder = file.rpartition("/")[0] + "/"
    return any(user in ("", file, folder) and name in names.split() for user, names in ALLOWED)


def violations(root):
    """All violations under a source tree, as lines of text."""
    package = root / PACKAGE
    modules = {path.stem for path in package.rglob("*.py")} | {"_core"}
    standard = {"os", "sys"}
    found = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"))
        own = own_names(tree)
        for node in ast.walk(tree):
            names = []
            if isinstance(node, ast.Attribute) and not of_self(node) and node.attr not in own:
                if not (isinstance(node.value, ast.Name) and node.value.id in standard):
                    names = [node.attr]
            elif asks_by_name(node) and node.args[1].value not in own:
                names = [node.args[1].value]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("argosy"):
                names = [alias.name for alias in node.names if alias.name not in modules]
            for name in names:
                if is_private(name) and not allowed(file, name):
                    what = ast.unparse(node).splitlines()[0]
                    found.append(f"{PACKAGE}/{file}:{node.lineno}: {what}: {name} is another file's own")
    return found


def self_test():
    """Each line: a file of the package, its text, and whether that is a violation."""
    cases = [
        ("static/_executor.py", "program._minimized", True),
        ("static/_executor.py", "program.record.minimized", False),
        ("static/_program.py", "class P:\n  def f(self, other):\n    self._root = other._root", False),
        ("nn/common.py", "fleet._core", True),
        ("fleet/transpiler.py", "fleet._core", False),
        ("fleet/transpiler.py", "program._recorder", True),
        ("fleet/deeper/thing.py", "fleet._core", True),
        ("nn/rnn.py", "init._text([1])", False),
        ("nn/rnn.py", "x._take(y)", True),
        ("nn/functional.py", "x._take(y)", False),
        ("nn/rnn.py", "hasattr(x, '_number')", True),
        ("nn/rnn.py", "hasattr(x, 'number')", False),
        ("_exit.py", "import os\nos._exit(0)", False),
        ("_creation.py", "from argosy._apply import _constant", True),
        ("_creation.py", "from argosy._apply import constant", False),
        ("_creation.py", "from argosy import _core, _exit", False),
        ("_creation.py", "x.__dict__", False),
    ]
    for file, text, bad in cases:
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, PACKAGE)
            for name, content in {"_exit.py": "", "_apply.py": "", file: text + "\n"}.items():
                package.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
                package.joinpath(name).write_text(content, encoding="utf-8")
            found = violations(pathlib.Path(folder))
        assert bool(found) == bad, f"{file} with {text!r}: expected {'a' if bad else 'no'} violation, got {found}"
        assert not bad or found[0].startswith(f"{PACKAGE}/{file}:1: "), found
    print(f"check_python_layers: self-test passed, {len(cases)} cases")


def unused(root):
    """Names of the table that nobody uses any more: it only gets shorter."""
    found = []
    for user, names in ALLOWED:
        place = root / PACKAGE / user
        files = place.rglob("*.py") if place.is_dir() else [place]
        text = "\n".join(path.read_text(encoding="utf-8") for path in files if path.exists())
        found += [f"dev/check_python_layers.py: {user or PACKAGE} does not use {name}: it is allowed for nothing"
                  for name in names.split() if f".{name}" not in text and f'"{name}"' not in text]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    found = violations(args.root) + unused(args.root)
    print("\n".join(found + [f"check_python_layers: {len(found)} violations" if found
                             else "check_python_layers: clean"]))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
