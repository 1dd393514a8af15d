"""Names of the package: found late, and missed with a hint at the nearest."""

import difflib
import importlib
import pkgutil
import sys
import types
from typing import Any, Dict, Iterable, List, Optional, Tuple


def missing(where: str, name: str, known: Iterable[str]) -> AttributeError:
    """The error for a name that `where` does not have; it lists the nearest that it has."""
    known = sorted(set(known))
    near = difflib.get_close_matches(name, known, n=5, cutoff=0.5)
    near += [other for other in known if name.lower() in other.lower() and other not in near][:3]
    hint = f"it has: {', '.join(known) or 'nothing'}"
    if near:
        hint = f"the nearest are: {', '.join(near)}"
    return AttributeError(f"{where} has no '{name}' in argosy's compatibility package; {hint}")


def given_out(value: Any) -> bool:
    """False for what a module has only imported from Python's library or NumPy."""
    home = value.__name__ if isinstance(value, types.ModuleType) else \
        getattr(value, "__module__", None) or ""
    return not home or home.partition(".")[0] in ("argosy", "paddle", "fleetx")


class _Names:
    """What a module can give out: attributes it has, submodules, and names of other modules."""

    def __init__(self, module: str, names: Dict[str, str], sources: Tuple[str, ...]):
        self.module = module
        self.names = dict(names)
        self.sources = sources
        self._modules: Optional[frozenset] = None

    @property
    def modules(self) -> frozenset:
        """The submodules, those that are files beside the package."""
        if self._modules is None:
            folders = vars(sys.modules[self.module]).get("__path__", ())
            self._modules = frozenset(found.name for found in pkgutil.iter_modules(folders)
                                      if found.name[0] != "_")
        return self._modules

    def known(self) -> List[str]:
        """All names a user may write."""
        own = vars(sys.modules[self.module])
        public = {name for name, value in own.items()
                  if not name.startswith("_") and given_out(value)}
        public |= self.modules | set(self.names)
        for source in self.sources:
            public.update(_public(source))
        return sorted(public)

    def find(self, name: str) -> Any:
        """The value of a name the module has not given out yet."""
        if name.startswith("__"):
            raise AttributeError(f"{self.module} has no '{name}'")
        if name in self.modules:
            return importlib.import_module(f"{self.module}.{name}")
        if name in self.names:
            source, _, attribute = self.names[name].partition(":")
            value = importlib.import_module(source)
            return getattr(value, attribute) if attribute else value
        if not name.startswith("_"):
            for source in self.sources:
                if name in _public(source):
                    return getattr(importlib.import_module(source), name)
        raise missing(self.module, name, self.known())


def _public(source: str) -> Iterable[str]:
    module = importlib.import_module(source)
    return getattr(module, "__all__", None) or [name for name in vars(module)
                                                if not name.startswith("_")]


def lazy(module: str, names: Optional[Dict[str, str]] = None, sources: Iterable[str] = ()):
    """`__getattr__, __dir__ = lazy(__name__, ...)` of a module.

    Submodules are imported when they are first named.
    names: a name here, and "module:name" or "module" where it comes from.
    sources: modules all of whose public names are names here too.
    A name that is none of these raises an AttributeError with the nearest names.
    """
    table = _Names(module, names or {}, tuple(sources))

    def __getattr__(name: str) -> Any:
        value = table.find(name)
        setattr(sys.modules[module], name, value)
        return value

    return __getattr__, table.known


class _Strict(type):
    def __getattr__(cls, name: str) -> Any:
        raise missing(f"{cls.__module__}.{cls.__qualname__}", name,
                      [known for known in dir(cls) if not known.startswith("_")])


class Namespace(metaclass=_Strict):
    """Base of classes that only hold names; a missing one is answered as in modules."""


def alias(name: str, module: str) -> None:
    """Makes `import name` give a module that is there under another name."""
    sys.modules[name] = importlib.import_module(module)
