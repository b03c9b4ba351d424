"""Protect pictures of people so that they stay useful, and prove how well it worked.

`protect`, `audit` and `recover` work on folders, as the commands of these names do; `load_method` on pictures in
memory. `methods()`, `attacks()` and `experts()` are tables of what there is.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from veilkit.lookup import lazy_names

if TYPE_CHECKING:
    from veilkit.attacks.table import attacks as attacks
    from veilkit.audit.options import AuditOptions as AuditOptions
    from veilkit.audit.result import AuditResult as AuditResult
    from veilkit.audit.result import read_audit as read_audit
    from veilkit.audit.run import run_audit as audit
    from veilkit.audit.run import run_audit as run_audit
    from veilkit.errors import VeilkitError as VeilkitError
    from veilkit.experts.registry import Addition as Addition
    from veilkit.experts.registry import add_expert as add_expert
    from veilkit.experts.registry import experts as experts
    from veilkit.experts.registry import load_expert as load_expert
    from veilkit.key import Key as Key
    from veilkit.methods.in_memory import LoadedMethod as LoadedMethod
    from veilkit.methods.in_memory import Protected as Protected
    from veilkit.methods.in_memory import load_method as load_method
    from veilkit.methods.table import methods as methods
    from veilkit.pipeline.options import ProtectOptions as ProtectOptions
    from veilkit.pipeline.options import RecoverOptions as RecoverOptions
    from veilkit.pipeline.protect import Outcome as Outcome
    from veilkit.pipeline.protect import protect as protect
    from veilkit.pipeline.recovery import recover as recover
    from veilkit.pipeline.recovery.target import Recovered as Recovered
    from veilkit.version import __version__ as __version__

# torch takes seconds to import: names are looked up when they are first used.
_NAMES = {
    "audit.options": "AuditOptions",
    "audit.result": "AuditResult read_audit",
    "audit.run": "run_audit",
    "errors": "VeilkitError",
    "experts.registry": "Addition add_expert load_expert",
    "key": "Key",
    "methods.in_memory": "LoadedMethod Protected load_method",
    "pipeline.options": "ProtectOptions RecoverOptions",
    "pipeline.protect": "Outcome protect",
    "pipeline.recovery": "recover",
    "pipeline.recovery.target": "Recovered",
    "version": "__version__",
}
# Folders of the package whose names are also functions, and those functions.
_CALLED = {
    "attacks": ("veilkit.attacks.table", "attacks"),
    "audit": ("veilkit.audit.run", "run_audit"),
    "experts": ("veilkit.experts.registry", "experts"),
    "methods": ("veilkit.methods.table", "methods"),
}
__all__ = [*_CALLED, *" ".join(_NAMES.values()).split()]  # noqa: PLE0604 - all are strings
_named = lazy_names(__name__, _NAMES)


class _Called(ModuleType):
    """A folder of the package that can be called: `veilkit.audit.run` is in it, `veilkit.audit(...)` audits."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self._function)

    @property
    def _function(self) -> Any:
        module, function = _CALLED[self.__name__.rpartition(".")[2]]
        return getattr(import_module(module), function)


class _Veilkit(ModuleType):
    """Makes folders callable as Python binds them here, whatever was imported first (docs/decisions.md, 8)."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _CALLED and isinstance(value, ModuleType):
            value.__class__ = _Called
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Veilkit


def __getattr__(name: str) -> Any:
    return import_module(f"veilkit.{name}") if name in _CALLED else _named(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
