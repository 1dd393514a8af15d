#!/usr/bin/env python3
"""Runs the benchmarks of two builds in turns and compares them, figure by figure.

    bench/compare_builds.py OLD/bin/argosy NEW/bin/argosy [--pairs 11] [NAME...]

Builds run right after each other, in alternating order, because machines are shared: what counts is the
ratio of each pair, new to old, and the median of all pairs. Above 1 the new build is quicker.
"""
import argparse
import json
import statistics
import subprocess
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One figure of a benchmark's JSON."""
    name: str
    command: str
    key: str
    less_is_better: bool = False


FIGURES = [
    Figure("ctr adam", "ctr --optimizer adam --rounds 3 --steps 60", "examples_per_second"),
    Figure("ctr sgd", "ctr --optimizer sgd --rounds 3 --steps 60", "examples_per_second"),
    Figure("ctr adagrad", "ctr --optimizer adagrad --rounds 3 --steps 60", "examples_per_second"),
    Figure("ps async", "ps --mode async --rounds 1 --steps 60", "examples_per_second"),
    Figure("ps sync", "ps --mode sync --rounds 1 --steps 60", "examples_per_second"),
    Figure("ps geo", "ps --mode geo --optimizer sgd --rounds 1 --steps 60", "examples_per_second"),
    Figure("collective", "collective --turns 3 --steps 200", "samples_per_second"),
    Figure("allreduce any 1.2 MB", "allreduce --turns 3", "any_1.2MB_best_us", True),
    Figure("allreduce arena 1.2 MB", "allreduce --turns 3", "arena_1.2MB_best_us", True),
    Figure("allreduce tcp 1.2 MB", "allreduce --turns 3", "tcp_1.2MB_best_us", True),
    Figure("parse multislot", "parse --mb 30 --rounds 3", "multislot_mb_per_second"),
    Figure("parse criteo", "parse --mb 30 --rounds 3", "criteo_mb_per_second"),
    Figure("table pull", "table --rows 2000000 --rounds 3", "pull_us", True),
    Figure("table push", "table --rows 2000000 --rounds 3", "push_us", True),
    Figure("pulls", "pulls --rows 1000000 --batches 3000", "rows_per_second"),
    Figure("rpc 64 bytes", "rpc --rounds 5", "small_us", True),
    Figure("rpc 640 KiB", "rpc --rounds 5", "large_us", True),
]


def run(program: str, command: str) -> dict:
    """What one run of a benchmark printed."""
    line = [program, "bench", *command.split(), "--json"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(line)}: exit code {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def compare(old: str, new: str, command: str, figures: list[Figure], pairs: int) -> None:
    """Prints a line of the table for each figure of a command."""
    ratios: dict[str, list[float]] = {figure.name: [] for figure in figures}
    values: dict[str, list[tuple[float, float]]] = {figure.name: [] for figure in figures}
    for pair in range(pairs):
        order = [old, new] if pair % 2 == 0 else [new, old]
        results = {program: run(program, command) for program in order}
        for figure in figures:
            before, after = results[old][figure.key], results[new][figure.key]
            values[figure.name].append((before, after))
            ratios[figure.name].append(before / after if figure.less_is_better else after / before)
    for figure in figures:
        before, after = (statistics.median(column) for column in zip(*values[figure.name]))
        all_ratios = sorted(ratios[figure.name])
        print(f"| {figure.name} | `argosy bench {command}` | {before:,.6g} | {after:,.6g} "
              f"| **{statistics.median(all_ratios):.3f}** ({all_ratios[0]:.3f} to {all_ratios[-1]:.3f}) |", flush=True)


def main() -> None:
    """Compares what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("names", nargs="*", help="beginnings of: " + ", ".join(figure.name for figure in FIGURES))
    options = parser.parse_intermixed_args()
    wanted = [figure for figure in FIGURES
              if not options.names or any(figure.name.startswith(name) for name in options.names)]
    if not wanted:
        parser.error(f"no figure begins with {' or '.join(options.names)}")
    print("| what | command | old | new | new to old, median of pairs |")
    print("|---|---|---|---|---|")
    for command in dict.fromkeys(figure.command for figure in wanted):
        compare(options.old, options.new, command, [f for f in wanted if f.command == command], options.pairs)


if __name__ == "__main__":
    main()
