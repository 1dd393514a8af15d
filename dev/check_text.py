#!/usr/bin/env python3
"""Checks the text of the tree: no path of somebody's machine in any file, only ASCII in C++ sources.
A source file that has grown past 600 lines is a warning. Exit code 1 if there is any violation.

  check_text.py [--root DIR]
"""

import argparse
import pathlib
import re
import subprocess
import sys

# Patterns are written so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w.$}/-])/(?:work|root)/")
OUTSIDE_PATH = re.compile(r"[.]{2}/shared\b")
OUTSIDE_PATH_ALLOWED = (".ci/run",)
CXX = (".h", ".cc")
CODE = (*CXX, ".py", ".sh", ".cmake")
LONG = 600


def text_files(root):
    """Paths under version control or about to be; without git, everything outside of build folders."""
    git = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z", "-co", "--exclude-standard"]
    try:
        listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        inside = (path.relative_to(root) for path in root.rglob("*"))
        listed = [p.as_posix() for p in inside if not re.match(r"build|\.git$", p.parts[0])]
    return sorted(name for name in listed if name and (root / name).is_file())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    bad = 0
    for name in text_files(root):
        content = (root / name).read_bytes()
        if b"\0" in content:
            continue
        lines = content.decode("utf-8", errors="replace").split("\n")
        for number, line in enumerate(lines, 1):
            rule = None
            if MACHINE_PATH.search(line):
                rule = "names a path that exists on one machine only"
            elif OUTSIDE_PATH.search(line) and name not in OUTSIDE_PATH_ALLOWED:
                rule = "names a folder outside of the tree"
            elif name.endswith(CXX) and not line.isascii():
                rule = "C++ sources are ASCII"
            if rule:
                bad += 1
                print(f"{name}:{number}: {rule}: {line.strip()[:80]}")
        if name.endswith(CODE) and len(lines) > LONG:
            print(f"{name}: warning: {len(lines)} lines, usually two ideas past {LONG}")
    print(f"check_text: {bad} violations" if bad else "check_text: clean")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
