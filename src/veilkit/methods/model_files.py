"""Where the files go that are trained together with a model."""

from __future__ import annotations

from pathlib import Path


def expert_beside(model: Path) -> Path:
    """Where the recogniser that was trained with a model goes."""
    return model.with_name(f"{model.stem}.expert.safetensors")


def decoder_beside(model: Path) -> Path:
    """Where the decoder of a model file goes."""
    return model.with_name(f"{model.stem}.decoder.safetensors")
