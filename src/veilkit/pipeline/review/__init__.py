"""A private page to look at what a run did: before and after, doubtful first, with boxes to correct."""

from veilkit.pipeline.review.page import ReviewPicture, write_review

__all__ = ["ReviewPicture", "write_review"]
