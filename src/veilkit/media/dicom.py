"""DICOM pictures (extra: dicom): pixels as a viewer shows them, and nothing of the headers, which name patients."""

from __future__ import annotations

import importlib
import io
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import MissingExtraError, RefusedImage

_MOST_FRAMES = 100_000
_GREY = ("MONOCHROME1", "MONOCHROME2")
_COLOUR = ("RGB", "YBR_FULL", "YBR_FULL_422", "YBR_ICT", "YBR_RCT")


def is_dicom(data: bytes) -> bool:
    """Whether a file begins as DICOM files do."""
    return data[128:132] == b"DICM"


class DicomFile:
    """An opened DICOM file. Raises RefusedImage for what cannot be shown, and where text is known to be burned in."""

    def __init__(self, data: bytes) -> None:
        try:
            self._pydicom = importlib.import_module("pydicom")
        except ImportError:
            raise RefusedImage(f"a DICOM picture: {MissingExtraError('pydicom', 'dicom')}") from None
        self._header: Any = self._pydicom.dcmread(io.BytesIO(data))
        if str(self._header.get("BurnedInAnnotation", "")).strip().upper() == "YES":
            raise RefusedImage("a DICOM picture whose header says that text is burned into it: blank that out first")
        if "PixelData" not in self._header or "Rows" not in self._header:
            raise RefusedImage("a DICOM file without a picture")
        self.width, self.height = int(self._header.Columns), int(self._header.Rows)
        self.frames = int(self._header.get("NumberOfFrames", 1) or 1)
        self.milliseconds = max(1, round(float(self._header.get("FrameTime", 100) or 100)))
        kind = str(self._header.get("PhotometricInterpretation", ""))
        if kind not in (*_GREY, *_COLOUR, "PALETTE COLOR") or not 1 <= self.frames <= _MOST_FRAMES:
            raise RefusedImage("a DICOM picture of a kind that is not read: convert it to PNG first")
        self._kind = kind

    def pictures(self) -> Iterator[NDArray[np.uint8]]:
        """Each frame as HWC uint8 RGB."""
        pixels = importlib.import_module("pydicom.pixels")
        for index in range(self.frames):
            values = pixels.pixel_array(self._header, index=index)
            if self._kind in _GREY:
                shown = self._grey(pixels.apply_modality_lut(values, self._header))
            else:
                if self._kind == "PALETTE COLOR":
                    values = pixels.apply_color_lut(values, self._header)
                shown = (values >> 8 if values.dtype == np.uint16 else values).astype(np.uint8)
            yield np.ascontiguousarray(
                np.broadcast_to(shown[..., None], (*shown.shape, 3)) if shown.ndim == 2 else shown
            )

    def _grey(self, values: NDArray[Any]) -> NDArray[np.uint8]:
        """Grey values in the window that the file asks for, or from its darkest to its lightest."""
        values = values.astype(np.float64)
        window = self._number("WindowCenter"), self._number("WindowWidth")
        if window[0] is not None and window[1] is not None and window[1] > 1:
            share = (values - (window[0] - 0.5)) / (window[1] - 1) + 0.5  # the linear function of DICOM PS3.3 C.11.2
        else:
            low, high = float(values.min()), float(values.max())
            share = (values - low) / max(high - low, 1e-9)
        share = share.clip(0, 1)
        return np.rint(255 * (1 - share if self._kind == "MONOCHROME1" else share)).astype(np.uint8)

    def _number(self, name: str) -> float | None:
        """A number of the header, or the first of several."""
        value = self._header.get(name)
        if value is None or value == "":
            return None
        return float(value if isinstance(value, int | float | str) else value[0])
