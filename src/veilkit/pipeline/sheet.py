"""A picture sheet: originals in the first row, what became of them below."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from veilkit.datasets.folder import load_folder
from veilkit.errors import DataError
from veilkit.key import Key
from veilkit.media.writing import Files
from veilkit.pipeline.manifest import read_manifest

_HEIGHT, _LEAST, _MOST = 160, 64, 240  # of a cell, and of its width
_GAP = 4
_MARGIN = 130


def write_sheet(target: Path, originals: Path, releases: Mapping[str, tuple[Path, Key]], columns: int = 10) -> None:
    """Draw evenly chosen originals above their counterparts in each release (name -> (folder, its key)).

    What a release does not hold is left white.
    """
    records = load_folder(originals).records
    chosen = records[:: max(1, len(records) // columns)][:columns]
    rows = {"original": [originals / record.path for record in chosen]}
    for name, (folder, key) in releases.items():
        manifest = read_manifest(folder)
        if manifest is None:
            raise DataError(f"{folder} has no manifest: is the release finished?")
        files = Files(manifest.image_format)
        rows[name] = [folder / (key.pseudonym(record.path) + files.suffix(record.path)) for record in chosen]
    with Image.open(rows["original"][0]) as first:
        across = min(_MOST, max(_LEAST, round(_HEIGHT * first.width / first.height)))
    sheet = Image.new("RGB", (_MARGIN + len(chosen) * (across + _GAP), _GAP + len(rows) * (_HEIGHT + _GAP)), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=16)
    for row, (name, shown) in enumerate(rows.items()):
        top = _GAP + row * (_HEIGHT + _GAP)
        draw.text((8, top + _HEIGHT // 2 - 8), name, fill="black", font=font)
        for column, file in enumerate(shown):
            if file.is_file():
                with Image.open(file) as image:
                    cell = image.convert("RGB").resize((across, _HEIGHT))
                sheet.paste(cell, (_MARGIN + column * (across + _GAP), top))
    target.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(target)
