"""Whether functions that get no value compute now or record a program."""

_static = False


def in_static_mode() -> bool:
    """True after enable_static: functions record into the default program."""
    return _static


def in_dynamic_mode() -> bool:
    """True unless enable_static was called: functions compute at once."""
    return not _static


def enable_static() -> None:
    """Lets functions record from now on."""
    global _static
    _static = True


def disable_static(place=None) -> None:
    """Lets functions compute at once from now on, as they do at first."""
    global _static
    _static = False
