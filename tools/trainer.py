#!/usr/bin/env python3
"""Trains the model of a YAML file (-m config.yaml, -o key=value)."""

from _argosy import run

run("train")
