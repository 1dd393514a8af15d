"""What training does about values that are not finite."""

from argosy import _core

_policy = "fail"


def set_check_nan(policy: str) -> None:
    """Says what becomes of a loss or gradient that is NaN or infinite.

    "fail", as it is at first, raises DataError that names the step and the first such variable,
    "warn" says so and goes on, "off" does not look. It is for programs and optimizers whose first
    step comes later. A program with such a value is not saved in any case."""
    global _policy
    _core.parse_check_nan(policy)
    _policy = policy


def check_nan() -> str:
    """What set_check_nan has said, else "fail"."""
    return _policy
