#!/usr/bin/env python3
"""Trains the model of a YAML file (-m config.yaml, -o key=value) as a dynamic graph: the model runs for each batch."""

from _argosy import run

run("train", "runner.graph=dynamic")
