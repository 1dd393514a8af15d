#!/usr/bin/env python3
"""Trains the model of a YAML file with servers and workers (-m config.yaml, -o key=value); roles come from the environment."""

from _argosy import run

run("train")
