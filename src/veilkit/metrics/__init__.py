"""Tensors to numbers: pure functions."""

from __future__ import annotations

from veilkit.metrics.agreement import category_counts, cohen_kappa, fleiss_kappa, free_marginal_kappa
from veilkit.metrics.chaos import anderson_darling
from veilkit.metrics.clustering import kmeans_ari, silhouette
from veilkit.metrics.cross_pairs import CrossPairs, PairRates
from veilkit.metrics.crossed import crossed_weights
from veilkit.metrics.image import paper_psnr, psnr, ssim
from veilkit.metrics.retrieval import RetrievalResult, retrieval, retrieval_from_similarities
from veilkit.metrics.sensitivity import Sensitivity, sensitivity
from veilkit.metrics.settings import FourSettings, four_settings
from veilkit.metrics.uncertainty import (
    Interval,
    bootstrap_interval,
    bootstrap_means,
    clopper_pearson,
    paired_difference,
    percentile_interval,
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
    "CrossPairs",
    "FoldAccuracy",
    "FourSettings",
    "Interval",
    "PairRates",
    "RetrievalResult",
    "RocCurve",
    "Sensitivity",
    "accuracy_by_fold",
    "anderson_darling",
    "auc",
    "bootstrap_interval",
    "bootstrap_means",
    "category_counts",
    "clopper_pearson",
    "cohen_kappa",
    "crossed_weights",
    "equal_error_rate",
    "fleiss_kappa",
    "four_settings",
    "free_marginal_kappa",
    "kmeans_ari",
    "paired_difference",
    "paper_psnr",
    "percentile_interval",
    "psnr",
    "retrieval",
    "retrieval_from_similarities",
    "roc",
    "sensitivity",
    "silhouette",
    "ssim",
    "tpr_at_fpr",
]
