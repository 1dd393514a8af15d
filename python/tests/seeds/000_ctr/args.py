"""Arguments of train.py."""

import argparse


def parse_args():
    """--is_local 1: alone; 0: as the environment says."""
    parser = argparse.ArgumentParser(description="CTR example")
    parser.add_argument("--is_local", type=int, default=0, help="1: train alone (default: 0)")
    return parser.parse_args()
