"""ONNX files that refer to others, never end or ask for everything: refused, by a process that can be ended."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from tests.experts.onnx_files import (
    MEAN_COLOUR,
    Node,
    endless_loop,
    external_everywhere,
    hungry,
    nested,
    write_onnx,
)
from veilkit.errors import CheckpointError
from veilkit.experts import trial
from veilkit.experts.onnx import open_onnx, refuse_external_data
from veilkit.experts.preprocessing import NORMALISATIONS
from veilkit.experts.registry import Addition, add_expert
from veilkit.experts.trial import Limits, try_onnx

SIGNED = NORMALISATIONS["signed"]
ASKED = Addition("colours", "MIT", normalisation=SIGNED)


@pytest.mark.parametrize("place", external_everywhere("beside.bin"))
def test_external_data_is_refused_wherever_it_is(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where the other file lies in the current folder, where onnxruntime would find it."""
    monkeypatch.chdir(tmp_path)
    Path("beside.bin").write_bytes(struct.pack("<6f", *range(6)))
    graph, model = external_everywhere("beside.bin")[place]
    nodes = (MEAN_COLOUR[0], Node("Flatten", ("pooled",), "flat"), Node("MatMul", ("flat", "w"), "out"))
    path = write_onnx(tmp_path / "out.onnx", nodes, graph_parts=graph, model_parts=model)
    with pytest.raises(CheckpointError, match="in another file"):
        open_onnx(path)


def test_a_key_that_protobuf_would_cut_is_refused() -> None:
    """Protobuf reads the lower 32 bits of a field's key; a walk that reads all of them would see another field."""
    key = 13 << 3 | 2 | 1 << 33
    encoded = bytes([key & 0x7F | 0x80, *(key >> shift & 0x7F | 0x80 for shift in (7, 14, 21)), key >> 28])
    with pytest.raises(CheckpointError, match="not an ONNX file"):
        refuse_external_data(encoded + b"\0", "x.onnx")


def test_a_file_of_onnxruntimes_own_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.onnx"
    path.write_bytes(b"\x08\x02\0\0ORTM" + bytes(64))
    with pytest.raises(CheckpointError, match=r"own\.onnx"):
        open_onnx(path)


def test_graphs_in_graphs_without_number_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nested more than 64 levels"):
        open_onnx(write_onnx(tmp_path / "deep.onnx", MEAN_COLOUR, graph_parts=nested(2000)))
    assert open_onnx(write_onnx(tmp_path / "plain.onnx", MEAN_COLOUR, graph_parts=b"")).size == (16, 8)


def test_crafted_onnx_files_are_walked_or_refused_in_words(tmp_path: Path) -> None:
    rng = random.Random(0)
    whole = write_onnx(tmp_path / "w.onnx", MEAN_COLOUR, constants={"w": [[1.0, 2.0]]}).read_bytes()
    refused = 0
    for _ in range(400):
        data = bytearray(whole[: rng.randrange(len(whole))] if rng.random() < 0.3 else whole)
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data) or 1) : rng.randrange(len(data) or 1)] = rng.randbytes(rng.randint(0, 3))
        try:
            refuse_external_data(bytes(data), "crafted.onnx")
        except CheckpointError:
            refused += 1
    assert refused > 200


def test_an_onnx_expert_is_tried_in_a_process_of_its_own(tmp_path: Path, home: Path) -> None:
    info = add_expert(write_onnx(tmp_path / "mean.onnx", MEAN_COLOUR), ASKED)
    assert info.dim == 3
    assert info.preprocessing is not None
    assert info.preprocessing.size == (16, 8)


def test_an_endless_loop_is_refused_and_leaves_nothing(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "LIMITS", Limits(seconds=2.0))
    with pytest.raises(CheckpointError, match=r"loop\.onnx: .* within 2 seconds of computing; .* loop"):
        add_expert(endless_loop(tmp_path / "loop.onnx"), ASKED)
    assert not (home / "experts").exists()


def test_a_small_file_that_asks_for_gigabytes_is_refused(tmp_path: Path) -> None:
    file = hungry(tmp_path / "hungry.onnx", 10**9)
    with pytest.raises(CheckpointError, match=r"allocate memory|needs too much memory|needs more memory"):
        try_onnx(file, SIGNED, name="hungry", size=None, order="rgb", flip=False)
