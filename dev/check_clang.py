#!/usr/bin/env python3
"""What clang finds that g++ does not, over the files where it pays, by the commands of a build folder that clang was
configured for (make check-clang configures build-check/ and compiles nothing there).

  check_clang.py threads BUILD                 -Wthread-safety over every file that uses argosy::Mutex
  check_clang.py tidy BUILD [--commits 30]     clang-tidy over the files whose code the last commits changed, newest
                   [--most 40]                   first; those left out are counted, and the same on every machine

One line per finding as the tool prints it; exit code 1 if there is any.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
MUTEX = re.compile(r"\bMutex(Lock)?\b")


def commands(build):
    """The compiler's command of each source file of ours, by its path in the tree."""
    found = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["file"])
        if path.is_relative_to(ROOT) and not path.is_relative_to(build):
            found.setdefault(path.relative_to(ROOT).as_posix(), entry)
    return found


def uses_mutex(file):
    """Whether a source, its own header or the part of a class that it has names a Mutex."""
    path = ROOT / file
    texts = [path.read_text(encoding="utf-8")]
    texts += [own.read_text(encoding="utf-8") for own in own_headers(path, texts[0])]
    return any(MUTEX.search(text) for text in texts)


def own_headers(path, text):
    """The headers of a source's own folder that it includes."""
    folder = path.parent.relative_to(ROOT).as_posix()
    names = re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
    return [ROOT / name for name in names if name.startswith(folder + "/") and (ROOT / name).exists()]


def touched(commits):
    """Files that the last commits touched and that are still there, newest first."""
    out = git("log", f"-{commits}", "--name-only", "--format=")
    return [name for name in dict.fromkeys(out.split("\n")) if name and (ROOT / name).exists()]


def git(*args):
    return subprocess.run(["git", "-C", ROOT, *args], check=True, capture_output=True, text=True).stdout


def code_of(text):
    """C++ without blanks and without comments, but for those that clang-tidy reads."""
    lines = (re.sub(r"(^|\s)//(?!.*NOLINT).*", "", line) for line in text.split("\n"))
    return [line for line in (" ".join(line.split()) for line in lines) if line]


def changed(commits):
    """Files whose code the last commits changed: new words in a comment are no reason to look again."""
    hashes = git("log", f"-{commits + 1}", "--format=%H").split()
    before = hashes[commits] if len(hashes) > commits else None

    def differs(name):
        try:
            return code_of(git("show", f"{before}:{name}")) != code_of((ROOT / name).read_text(encoding="utf-8"))
        except subprocess.CalledProcessError:
            return True  # it is new

    names = [name for name in touched(commits) if name.endswith((".h", ".cc"))]
    return [name for name in names if before is None or differs(name)]


def sources_of(names, known):
    """The sources to look at for touched files: themselves, and for a header the source or test beside it."""
    found = {}
    for name in names:
        stem, ending = os.path.splitext(name)
        candidates = [name] if ending == ".cc" else [f"{stem}.cc", f"{stem}_test.cc"] if ending == ".h" else []
        for file in [file for file in candidates if file in known][:1]:
            found[file] = None
    return list(found)


def check_threads(entry):
    """The compiler over one file, for its warnings only."""
    command = shlex.split(entry["command"])
    output = command.index("-o")
    del command[output:output + 2]
    return subprocess.run([*command, "-fsyntax-only", "-Wthread-safety", "-Werror"], cwd=entry["directory"],
                          capture_output=True, text=True)


def check_tidy(entry, build):
    return subprocess.run(["clang-tidy", "--quiet", "-p", build, entry["file"]], cwd=ROOT, capture_output=True, text=True)


def run(files, known, work):
    """Runs `work` over files, as many at once as there are cores. Returns those that failed."""
    failed = []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, result in zip(files, pool.map(lambda file: work(known[file]), files)):
            if result.returncode != 0:
                failed.append(file)
                print(result.stdout + result.stderr, end="", flush=True)
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["threads", "tidy"])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--commits", type=int, default=30)
    parser.add_argument("--most", type=int, default=40)
    args = parser.parse_args()
    build = args.build.resolve()
    known = commands(build)
    begin = time.monotonic()
    if args.check == "threads":
        files, work = [file for file in known if uses_mutex(file)], check_threads
    else:
        files, work = sources_of(changed(args.commits), known), lambda entry: check_tidy(entry, build)
        if len(files) > args.most:
            print(f"check_clang: tidy: the newest {args.most} of {len(files)} files")
            files = files[:args.most]
    if args.check == "threads" and not files:
        print(f"check_clang: no file of {build} uses Mutex, expected argosy's own", file=sys.stderr)
        return 1
    failed = run(files, known, work)
    print(f"check_clang: {args.check}: {len(files)} files in {time.monotonic() - begin:.0f} s, "
          f"{'findings in ' + ' '.join(failed) if failed else 'clean'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
