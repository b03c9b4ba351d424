"""The command that repeats an audit."""

from __future__ import annotations

import shlex

from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.thresholds import Thresholds
from veilkit.configs import as_dict


def command(result: AuditResult) -> str:
    """Experts that are files or were given as objects go by their names, and folders by what they hold."""
    words = ["veilkit", "audit", "ORIGINALS", "PROTECTED", "--expert"]
    words += [result.expert.name, "--judge", result.judge.name]
    if result.config["labels"] != "auto":
        words += ["--labels", result.config["labels"]]
    if result.release is not None and result.release["key_commitment"] and result.release["names"] == "pseudonyms":
        words += ["--key", "KEY"]
    for fact, words_for in (
        ("unseen", "--unseen UNSEEN"),
        ("held_out", "--held-out OTHERS"),
        ("student_sha256", "--student STUDENT"),
        ("decoder_sha256", "--decoder DECODER"),
        ("model_sha256", "--model MODEL"),
        ("start_sha256", "--start WEIGHTS"),
        ("boxes", "--boxes BOXES"),
    ):
        words += words_for.split() if fact in result.config else []
    if "budget" in result.config:
        words += ["--budget", f"{result.config['budget']['seconds']:g}s"]
    elif "learn" in result.config:
        words += ["--learn", str(result.config["learn"])]
    for name in result.config.get("attacks", ()):
        words += ["--attack", name]
    if result.config["draw_seed"]:
        words += ["--draw-seed", str(result.config["draw_seed"])]
    if result.config.get("thresholds", as_dict(Thresholds())) != as_dict(Thresholds()):
        words += ["--thresholds", "THRESHOLDS"]
    return shlex.join(words)
