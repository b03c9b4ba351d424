"""What this machine makes of a few fixed sums: CPUs, and versions of libraries, differ in the last bits."""

from __future__ import annotations

import hashlib
import io

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor


def arithmetic() -> str:
    """The kind of CPU as torch sees it, torch's version, and a hash of what the learned methods compute with."""
    digest = hashlib.sha256()
    for result in _results():
        digest.update(result.detach().contiguous().numpy().tobytes())
    for drawn in _drawn():
        digest.update(np.ascontiguousarray(drawn).tobytes())
    return f"{torch.backends.cpu.get_cpu_capability()} torch-{torch.__version__} {digest.hexdigest()[:16]}"


def encoding() -> str:
    """A hash of a fixed picture as PNG and JPEG, and of that JPEG read again."""
    rows, columns = np.mgrid[0:40, 0:24]
    pixels = np.stack([(rows * 6 + columns * step) % 256 for step in (3, 5, 7)], axis=2).astype(np.uint8)
    digest = hashlib.sha256()
    for options in ({"format": "PNG"}, {"format": "JPEG", "quality": 95}, {"format": "JPEG", "quality": 80}):
        buffer = io.BytesIO()
        Image.fromarray(pixels).save(buffer, **options)
        digest.update(buffer.getvalue())
        digest.update(np.asarray(Image.open(buffer).convert("RGB")).tobytes())
    return digest.hexdigest()[:16]


def _drawn() -> list[np.ndarray]:
    """What generated people and faces are drawn with: OpenCV's filters, BLAS and functions on small arrays."""
    numbers = (np.arange(48 * 40 * 3) * 0.6180339887498949 % 1).astype(np.float32)
    picture = numbers.reshape(48, 40, 3)
    points, turn = numbers.reshape(-1, 3) - np.float32(0.5), np.linalg.qr(numbers[:9].reshape(3, 3))[0]
    unit = points / np.linalg.norm(points, axis=1, keepdims=True)
    matrix = np.array([[0.9, -0.2, 3.0], [0.2, 0.9, -4.0]])
    return [
        *(cv2.GaussianBlur(picture, (0, 0), sigma) for sigma in (0.4, 1.3, 6.0)),
        *(cv2.resize(picture, (27, 61), interpolation=way) for way in (cv2.INTER_CUBIC, cv2.INTER_LINEAR)),
        cv2.resize(picture, (17, 21), interpolation=cv2.INTER_AREA),
        cv2.warpAffine(picture, matrix, (40, 48)),
        cv2.filter2D(picture, -1, picture[:7, :7, 0].copy()),
        points @ turn.T,
        unit @ turn[0],
        np.clip(unit @ turn[1], 0, 1) ** 22,
        np.arctan2(unit[:, 0], unit[:, 1]) + np.arccos(unit[:, 2]) + np.exp(unit).sum(axis=1),
        np.sin(points) * np.cos(points) + np.tanh(points) + np.log1p(numbers.reshape(-1, 3)),
    ]


def _results() -> list[Tensor]:
    """Convolutions of several shapes with their gradients, normalisation, resizing, FFT, products and functions."""
    count = torch.arange(2 * 3 * 64 * 32, dtype=torch.float64)
    pictures = ((count * 0.6180339887498949) % 1).float().reshape(2, 3, 64, 32).requires_grad_()

    def weight(*shape: int) -> Tensor:
        numbers = torch.arange(int(np.prod(shape)), dtype=torch.float64)
        return ((numbers * 0.7548776662466927) % 1 - 0.5).float().reshape(shape)

    maps = F.conv2d(pictures, weight(16, 3, 7, 7), stride=2, padding=3)
    maps = F.batch_norm(maps, None, None, training=True)
    maps = F.leaky_relu(F.conv2d(maps, weight(16, 1, 3, 3), padding=1, groups=16), 0.2)
    maps = torch.tanh(F.conv2d(maps, weight(24, 16, 1, 1)))
    up = F.conv_transpose2d(maps, weight(24, 8, 4, 4), stride=2, padding=1)
    features = F.normalize(F.linear(maps.mean((2, 3)), weight(40, 24)))
    resized = [
        F.interpolate(pictures, (45, 27), mode=mode, antialias=antialias, align_corners=False)
        for mode in ("bilinear", "bicubic")
        for antialias in (False, True)
    ]
    blurred = F.conv2d(
        pictures, torch.exp(-(torch.arange(-6, 7).float() ** 2) / 18).repeat(3, 1, 1)[:, :, None], groups=3
    )
    spectrum = torch.fft.rfft2(pictures).abs()
    wide = F.conv2d(pictures[:, :1].reshape(2, 64, 8, 4), weight(64, 64, 3, 3), padding=1)  # as wide as a backbone's
    shares = torch.cat([F.gelu(wide), F.silu(wide)], dim=1).flatten(1).softmax(1)
    product = weight(64, 640) @ weight(640, 64)
    total = (
        up.pow(2).sum() + features.softmax(1).log().sum() + wide.pow(2).sum() + sum(each.sum() for each in resized)
    )
    (gradient,) = torch.autograd.grad(total, pictures)
    turned = F.grid_sample(
        pictures, F.affine_grid(weight(2, 2, 3), [2, 3, 20, 20], align_corners=False), align_corners=False
    )
    return [maps, up, wide, shares, product, features, *resized, blurred, spectrum, gradient, turned, total]
