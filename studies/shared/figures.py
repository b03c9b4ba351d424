"""Figures of a study: plain SVG plots, and sheets of pictures that stay in the study's folder."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

from veilkit.media.writing import write_atomically

Point = tuple[float, float, str]  # x, y, and what stands beside it
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BOTTOM = 460, 320, 56, 34, 24, 52
_COLOURS = ("#1f5fa8", "#b3401f", "#2f7d4f", "#7a4b9a", "#8a6d00", "#c2357a", "#4b5563", "#0a8a94")
_CELL = (64, 128)
_GAP, _MARGIN = 4, 84


def plot(
    file: Path,
    title: str,
    series: Mapping[str, Sequence[Point]],
    *,
    across: str,
    up: str,
    joined: bool = True,
    logarithmic: bool = False,
    ticks: Sequence[float] | None = None,
    dots: bool = True,
) -> None:
    """Write points, by series, as an SVG; y starts at 0. logarithmic: x, which must be positive.

    ticks: where x is labelled, inside of what is drawn; by default at each point. dots: points are marked and named.
    """
    points = [point for each in series.values() for point in each]
    xs = [math.log10(x) if logarithmic else x for x, _, _ in points] or [0.0]
    left, right, top = min(xs), max(xs), max([y for _, y, _ in points] + [1e-9])
    width, top = right - left or 1.0, 1.1 * top  # room for names

    def place(x: float, y: float) -> tuple[float, float]:
        along = ((math.log10(x) if logarithmic else x) - left) / width
        return _LEFT + 8 + along * (_WIDTH - _LEFT - _RIGHT - 16), _HEIGHT - _BOTTOM - max(y, 0.0) / top * (
            _HEIGHT - _TOP - _BOTTOM
        )

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-size="11" '
        f'font-family="sans-serif"><title>{escape(title)}</title><rect width="{_WIDTH}" height="{_HEIGHT}" '
        'fill="#fff"/>',
        f'<text x="{_LEFT}" y="18" font-size="13">{escape(title)}</text>',
        f'<path d="M{_LEFT},{_TOP} V{_HEIGHT - _BOTTOM} H{_WIDTH - _RIGHT}" fill="none" stroke="#555"/>',
        f'<text x="{_LEFT - 6}" y="{_HEIGHT - _BOTTOM + 4}" text-anchor="end">0</text>',
        f'<text x="{_LEFT - 6}" y="{_TOP + 4}" text-anchor="end">{top:.3g}</text>',
        f'<text x="14" y="{_HEIGHT / 2}" transform="rotate(-90 14 {_HEIGHT / 2})" text-anchor="middle">'
        f"{escape(up)}</text>",
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">{escape(across)}</text>',
    ]
    parts += [
        f'<text x="{place(x, 0)[0]:.1f}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{x:.4g}</text>'
        for x in (_ticks([x for x, _, _ in points], joined) if ticks is None else ticks)
    ]
    for number, (name, members) in enumerate(series.items()):
        colour = _COLOURS[number % len(_COLOURS)]
        if joined:
            line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y, _ in sorted(members))
            parts.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
            parts.append(
                f'<text x="{_WIDTH - _RIGHT}" y="{_TOP + 14 * number}" text-anchor="end" fill="{colour}">'
                f"{escape(name)}</text>"
            )
        for x, y, label in members if dots else ():
            at = place(x, y)
            parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3.5" fill="{colour}"/>')
            anchor, shift = ("end", -6) if at[0] > _WIDTH / 2 else ("start", 6)
            parts.append(
                f'<text x="{at[0] + shift:.1f}" y="{at[1] - 6:.1f}" text-anchor="{anchor}">{escape(label)}</text>'
            )
    write_atomically(file, ("".join(parts) + "</svg>\n").encode(), file.parent)


def _ticks(values: Sequence[float], every: bool) -> list[float]:
    """Where the axis is labelled: at each value, or at the least and the greatest."""
    distinct = sorted(set(values))
    return distinct if every else distinct[:: max(1, len(distinct) - 1)]


def sheet(file: Path, rows: Mapping[str, Tensor], cell: tuple[int, int] = _CELL) -> None:
    """A PNG of named rows of pictures, uint8 (N, 3, H, W) each, the same people in each column.

    cell: width and height of a picture there.
    """
    columns = max(len(images) for images in rows.values())
    font = ImageFont.load_default(size=14)
    margin = max([_MARGIN, *(math.ceil(font.getlength(name)) + 12 for name in rows)])
    size = (margin + columns * (cell[0] + _GAP), _GAP + len(rows) * (cell[1] + _GAP))
    drawn = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(drawn)
    for row, (name, images) in enumerate(rows.items()):
        top = _GAP + row * (cell[1] + _GAP)
        draw.text((6, top + cell[1] // 2 - 8), name, fill="black", font=font)
        for column, image in enumerate(images):
            picture = Image.fromarray(image.permute(1, 2, 0).contiguous().numpy())
            drawn.paste(picture.resize(cell, Image.Resampling.NEAREST), (margin + column * (cell[0] + _GAP), top))
    buffer = io.BytesIO()
    drawn.save(buffer, "PNG")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, buffer.getvalue(), file.parent)
