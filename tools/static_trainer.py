#!/usr/bin/env python3
"""Trains the model of a YAML file (-m config.yaml, -o key=value); argosy has one engine for both kinds of graph."""

from _argosy import run

run("train")
