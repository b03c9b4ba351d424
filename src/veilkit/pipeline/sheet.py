"""A picture sheet: originals in the first row, what became of them below."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from veilkit.datasets.folder import load_folder
from veilkit.errors import DataError
from veilkit.key import read_key
from veilkit.media.writing import Files
from veilkit.pipeline.manifest import read_manifest

_CELL = (96, 192)
_GAP = 4
_MARGIN = 92


def write_sheet(target: Path, originals: Path, releases: Mapping[str, tuple[Path, Path]], columns: int = 10) -> None:
    """Draw evenly chosen originals above their counterparts in each release (name -> (folder, key file))."""
    records = load_folder(originals).records
    chosen = records[:: max(1, len(records) // columns)][:columns]
    rows = {"original": [originals / record.path for record in chosen]}
    for name, (folder, key_file) in releases.items():
        manifest, key = read_manifest(folder), read_key(key_file)
        if manifest is None:
            raise DataError(f"{folder} has no manifest: is the release finished?")
        files = Files(manifest.image_format)
        rows[name] = [folder / (key.pseudonym(record.path) + files.suffix(record.path)) for record in chosen]
    width = _MARGIN + len(chosen) * (_CELL[0] + _GAP)
    sheet = Image.new("RGB", (width, _GAP + len(rows) * (_CELL[1] + _GAP)), "white")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(size=16)
    for row, (name, shown) in enumerate(rows.items()):
        top = _GAP + row * (_CELL[1] + _GAP)
        draw.text((8, top + _CELL[1] // 2 - 8), name, fill="black", font=font)
        for column, file in enumerate(shown):
            with Image.open(file) as image:
                sheet.paste(image.convert("RGB").resize(_CELL), (_MARGIN + column * (_CELL[0] + _GAP), top))
    target.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(target)
