"""Protect pictures of people so that they stay useful, and prove how well it worked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veilkit.audit import AuditResult as AuditResult
    from veilkit.audit import run_audit as run_audit
    from veilkit.pipeline.protect import Outcome as Outcome
    from veilkit.pipeline.protect import protect as protect
    from veilkit.pipeline.recover import recover as recover
    from veilkit.pipeline.recovery_folders import Recovered as Recovered
    from veilkit.version import __version__ as __version__

# torch takes seconds to import: names are looked up when they are first used.
_HOMES = {
    "AuditResult": "veilkit.audit",
    "run_audit": "veilkit.audit",
    "Outcome": "veilkit.pipeline.protect",
    "protect": "veilkit.pipeline.protect",
    "Recovered": "veilkit.pipeline.recovery_folders",
    "recover": "veilkit.pipeline.recover",
    "__version__": "veilkit.version",
}
__all__ = ["AuditResult", "Outcome", "Recovered", "__version__", "protect", "recover", "run_audit"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'veilkit' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
