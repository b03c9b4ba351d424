"""Tensors to numbers: pure functions."""

from __future__ import annotations

from veilkit.metrics.cross_pairs import CrossPairs, PairRates
from veilkit.metrics.image import anderson_darling, paper_psnr, psnr, ssim
from veilkit.metrics.ratings import (
    Sensitivity,
    category_counts,
    cohen_kappa,
    fleiss_kappa,
    free_marginal_kappa,
    sensitivity,
)
from veilkit.metrics.retrieval import RetrievalResult, retrieval
from veilkit.metrics.uncertainty import (
    Interval,
    bootstrap_interval,
    bootstrap_means,
    clopper_pearson,
    crossed_weights,
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
    "free_marginal_kappa",
    "paired_difference",
    "paper_psnr",
    "percentile_interval",
    "psnr",
    "retrieval",
    "roc",
    "sensitivity",
    "ssim",
    "tpr_at_fpr",
]
