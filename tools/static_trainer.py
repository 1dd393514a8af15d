#!/usr/bin/env python3
"""Trains the model of a YAML file (-m config.yaml, -o key=value) as a static graph: recorded once, then run."""

from _argosy import run

run("train", "runner.graph=static")
