"""A perception study without a server: one offline page that asks people, and the scoring of their answers."""

from __future__ import annotations

from veilkit.perception.make import Made, make_study
from veilkit.perception.score import score_study
from veilkit.perception.scores import StudyScores

__all__ = ["Made", "StudyScores", "make_study", "score_study"]
