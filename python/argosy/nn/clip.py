"""Clipping of gradients before they are used."""


class ClipGradBase:
    """Base of the three kinds."""

    def _text(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {self._text()}"


class ClipGradByValue(ClipGradBase):
    """Each element is held between min and max."""

    def __init__(self, max: float, min=None):
        self.max = float(max)
        self.min = -self.max if min is None else float(min)

    def _text(self) -> str:
        return f"value({self.min!r}, {self.max!r})"


class ClipGradByNorm(ClipGradBase):
    """Each parameter's gradient is scaled down to a norm of at most clip_norm."""

    def __init__(self, clip_norm: float):
        self.clip_norm = float(clip_norm)

    def _text(self) -> str:
        return f"norm({self.clip_norm!r})"


class ClipGradByGlobalNorm(ClipGradBase):
    """All gradients together are scaled down to a norm of at most clip_norm."""

    def __init__(self, clip_norm: float, group_name: str = "default_group",
                 auto_skip_clip: bool = False):
        self.clip_norm = float(clip_norm)

    def _text(self) -> str:
        return f"global_norm({self.clip_norm!r})"
