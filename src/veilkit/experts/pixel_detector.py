"""Detectors that look at 8-bit pixels, as pictures on disk have them, and what their answers have in common."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.experts.base import Detections, Detector, check_images, refuse_gradient

Pixels: TypeAlias = NDArray[np.uint8]
"""A picture as (H, W, 3), RGB."""


class PixelDetector(Detector):
    """A detector of 8-bit pictures, one at a time."""

    @abstractmethod
    def find(self, pixels: Pixels) -> Detections:
        """What is in a picture (H, W, 3), RGB."""

    def detect(self, images: Tensor) -> list[Detections]:
        """float32 (N, 3, H, W) in [0, 1] -> what is in each image, surest first."""
        check_images(images)
        refuse_gradient(images, self)
        return [self.find(as_pixels(image)) for image in images]


def as_pixels(image: Tensor) -> Pixels:
    """An image (3, H, W) in [0, 1] as (H, W, 3), 8 bits."""
    whole = image.detach().clamp(0, 1).mul_(255).round_().byte().permute(1, 2, 0).numpy()
    return np.array(whole, order="C")  # of one pixel, torch's own strides are none that dlib takes


def ask(detector: Detector, pixels: Pixels) -> Detections:
    """What any detector finds in a picture."""
    if isinstance(detector, PixelDetector):
        return detector.find(pixels)
    return detector.detect(torch.from_numpy(pixels).permute(2, 0, 1).float().div_(255)[None])[0]


def nothing(points: int = 0) -> Detections:
    """No face at all, of a detector of so many points."""
    return Detections(torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, points, 2))


def resized(pixels: Pixels, size: tuple[int, int]) -> Pixels:
    """A picture at another size (height, width); each of its pixels counts where it shrinks."""
    import cv2  # only who looks for faces has to pay for it

    smooth = cv2.INTER_AREA if size[0] < len(pixels) else cv2.INTER_LINEAR
    if size == pixels.shape[:2]:
        return pixels
    return np.asarray(cv2.resize(pixels, size[::-1], interpolation=smooth), np.uint8)


def distinct(boxes: NDArray[np.float32], scores: NDArray[np.float32], most: float) -> list[int]:
    """The places of boxes (K, 4), surest first, without those that overlap a surer one by more than `most` (IoU)."""
    left = np.argsort(-scores, kind="stable")
    areas = np.clip(boxes[:, 2:] - boxes[:, :2], 0, None).prod(1)
    kept = []
    while len(left):
        first, left = left[0], left[1:]
        kept.append(int(first))
        low, high = np.maximum(boxes[first, :2], boxes[left, :2]), np.minimum(boxes[first, 2:], boxes[left, 2:])
        shared = np.clip(high - low, 0, None).prod(1)
        left = left[shared <= most * np.maximum(areas[first] + areas[left] - shared, 1e-9)]
    return kept
