"""The command that repeats an audit."""

from __future__ import annotations

import shlex

from veilkit.audit.options import AuditOptions
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.thresholds import Thresholds
from veilkit.configs import as_dict
from veilkit.options import as_words


def command(result: AuditResult) -> str:
    """Experts that are files or were given as objects go by their names, and folders by what they hold."""
    words = ["veilkit", "audit", "ORIGINALS", "PROTECTED", "--expert", result.expert.name]
    words += ["--judge", result.judge.name]
    if result.release is not None and result.release["key_commitment"] and result.release["names"] == "pseudonyms":
        words += ["--key", "KEY"]
    facts = dict(result.config)
    if "budget" in facts:
        words += ["--budget", f"{facts['budget']['seconds']:g}s"]
        facts.pop("learn", None)
    words += as_words(AuditOptions, facts)
    if facts.get("thresholds", as_dict(Thresholds())) != as_dict(Thresholds()):
        words += ["--thresholds", "THRESHOLDS"]
    return shlex.join(words)
