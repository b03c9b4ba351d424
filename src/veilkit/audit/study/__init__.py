"""A perception study without a server: one offline page that asks people, and the scoring of their answers."""

from __future__ import annotations

from veilkit.audit.study.make import Made, make_study
from veilkit.audit.study.score import score_study
from veilkit.audit.study.scores import StudyScores

__all__ = ["Made", "StudyScores", "make_study", "score_study"]
