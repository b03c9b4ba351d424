"""Tensors to numbers: pure functions."""

from __future__ import annotations

from veilkit.metrics.chaos import anderson_darling
from veilkit.metrics.clustering import kmeans_ari, silhouette
from veilkit.metrics.image import paper_psnr, psnr, ssim
from veilkit.metrics.retrieval import RetrievalResult, retrieval, retrieval_from_similarities
from veilkit.metrics.settings import FourSettings, four_settings
from veilkit.metrics.uncertainty import (
    Interval,
    bootstrap_interval,
    bootstrap_means,
    clopper_pearson,
    paired_difference,
)
from veilkit.metrics.verification import (
    FoldAccuracy,
    RocCurve,
    accuracy_by_fold,
    auc,
    equal_error_rate,
    roc,
    tpr_at_fpr,
)

__all__ = [
    "FoldAccuracy",
    "FourSettings",
    "Interval",
    "RetrievalResult",
    "RocCurve",
    "accuracy_by_fold",
    "anderson_darling",
    "auc",
    "bootstrap_interval",
    "bootstrap_means",
    "clopper_pearson",
    "equal_error_rate",
    "four_settings",
    "kmeans_ari",
    "paired_difference",
    "paper_psnr",
    "psnr",
    "retrieval",
    "retrieval_from_similarities",
    "roc",
    "silhouette",
    "ssim",
    "tpr_at_fpr",
]
