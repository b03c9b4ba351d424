"""dlib's file is read as dlib reads it, and the torch network answers as dlib does."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import drawn, landmarks
from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts import load_expert
from veilkit.experts.alignment import CHIP
from veilkit.experts.dlib_files import IDENTITY, dlib_model, read_dlib_network
from veilkit.experts.dlib_identity import DlibBlock, DlibIdentity, torch_network


def integer(value: int) -> bytes:
    data = abs(value).to_bytes(8, "little").rstrip(b"\0") or b"\0"
    return bytes([len(data) | (0x80 if value < 0 else 0)]) + data


def number(value: float) -> bytes:
    mantissa, exponent = value.as_integer_ratio()[0], -(value.as_integer_ratio()[1].bit_length() - 1)
    return integer(mantissa) + integer(exponent)


def word(text: str) -> bytes:
    return integer(len(text)) + text.encode()


def tensor(shape: tuple[int, ...], values: list[float]) -> bytes:
    return integer(2) + b"".join(map(integer, shape)) + struct.pack(f"<{len(values)}f", *values)


def tail() -> bytes:
    return b"110" + 3 * tensor((0, 0, 0, 0), [])


def part() -> bytes:
    return integer(1) + 4 * integer(1)


def tiny_file(path: Path, last: bytes = b"") -> Path:
    """A 1x1 convolution of one filter, and an affine layer."""
    head = integer(1) + word("loss_metric_2") + number(0.25) + number(0.5) + integer(2) + integer(3)
    head += word("input_rgb_image_sized") + number(-1.5) + number(117.25) + number(0.0) + integer(150) + integer(300)
    sizes = b"".join(map(integer, (1, 1, 1, 2, 2, 0, 0)))
    conv = word("con_4") + tensor((4, 1, 1, 1), [0.5, -2.0, 3.0, 7.0]) + sizes + 2 * part() + 4 * number(1.0)
    affine = word("affine_") + tensor((2, 1, 1, 1), [1.5, -1.0]) + 2 * part() + integer(0)
    path.write_bytes(head + conv + tail() + integer(1) + affine + tail() + last)
    return path


def test_the_format_is_understood(tmp_path: Path) -> None:
    read = read_dlib_network(tiny_file(tmp_path / "tiny.dat"))
    assert read.mean == (-1.5, 117.25, 0.0)
    assert read.size == (150, 300)
    conv, affine = read.layers
    assert (conv.kind, conv.sizes) == ("con_4", (1, 1, 1, 2, 2, 0, 0))
    assert conv.values.tolist() == [0.5, -2.0, 3.0, 7.0]
    assert (affine.kind, affine.values.tolist()) == ("affine_", [1.5, -1.0])
    with pytest.raises(CheckpointError, match="another network"):
        torch_network(read, "tiny.dat")


def test_damage_is_told(tmp_path: Path) -> None:
    whole = tiny_file(tmp_path / "tiny.dat").read_bytes()
    file = tmp_path / "damaged.dat"
    for end in range(0, len(whole), 7):
        file.write_bytes(whole[:end])
        try:
            read = read_dlib_network(file)
        except CheckpointError as error:
            assert "damaged.dat" in str(error)  # noqa: PT017 - a cut between two layers leaves a shorter network
        else:
            assert len(read.layers) < 2
    with pytest.raises(CheckpointError, match="unknown layer 'dropout_'"):
        read_dlib_network(tiny_file(tmp_path / "other.dat", word("dropout_")))
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_dlib_network(tmp_path / "absent.dat")


def test_crafted_files_of_dlib_are_refused_in_words(tmp_path: Path) -> None:
    whole, file, rng, refused = tiny_file(tmp_path / "tiny.dat").read_bytes(), tmp_path / "c.dat", random.Random(0), 0
    for _ in range(200):
        data = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            data[rng.randrange(len(data))] = rng.choice([0, 1, 2, 8, 0x88, 0xFF, rng.randrange(256)])
        file.write_bytes(data)
        try:
            read_dlib_network(file)
        except CheckpointError:
            refused += 1
    assert refused > 100
    head = integer(1) + word("loss_metric_2")
    file.write_bytes(head + integer(2**60) + integer(1999))
    with pytest.raises(CheckpointError, match="expected a number of 64 bits"):
        read_dlib_network(file)
    file.write_bytes(integer(1) + integer(10**6) + bytes(10**6))
    with pytest.raises(CheckpointError, match="expected a word"):
        read_dlib_network(file)


def test_a_block_that_halves_adds_what_is_there_and_zeros() -> None:
    block = DlibBlock(2, 3, halves=True)
    torch.nn.init.zeros_(block.second.weight)
    torch.nn.init.zeros_(block.second.bias)  # type: ignore[arg-type]
    maps = torch.rand(1, 2, 8, 8)
    out = block(maps)
    assert out.shape == (1, 3, 4, 4)  # the convolution alone would give 3 x 3
    assert torch.allclose(out[:, :2], torch.nn.functional.avg_pool2d(maps, 2))
    assert not out[:, 2].any()


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilkit.experts.dlib_files._PACKAGE", "no_such_models")
    with pytest.raises(MissingExtraError, match=r"pip install 'veilkit\[faces\]'"):
        load_expert("dlib")


@pytest.fixture(scope="module")
def expert() -> DlibIdentity:
    try:
        return DlibIdentity.load()
    except MissingExtraError:
        pytest.skip("the extra faces is not installed")


def test_the_torch_network_answers_as_dlib_does(expert: DlibIdentity) -> None:
    dlib = pytest.importorskip("dlib", reason="the extra faces is not installed")
    images, truths = drawn()
    chips = CHIP.align(images, landmarks(truths)).mul(255).round()
    model = dlib.face_recognition_model_v1(str(dlib_model(IDENTITY)))
    pixels = chips.byte().permute(0, 2, 3, 1).contiguous().numpy()
    wanted = np.stack([np.array(model.compute_face_descriptor(each)) for each in pixels])
    found = expert.embed(chips / 255).numpy()
    assert np.abs(found - wanted).max() < 1e-5
    mirrored = DlibIdentity.load(flip=True).embed(chips / 255)
    assert torch.allclose(mirrored, (expert.embed(chips / 255) + expert.embed(chips.flip(3) / 255)) / 2, atol=1e-6)


def test_gradients_reach_the_image(expert: DlibIdentity) -> None:
    image = torch.rand(1, 3, 150, 150, generator=torch.Generator().manual_seed(0), requires_grad=True)
    value = expert.embed(image).square().sum()
    value.backward()  # type: ignore[no-untyped-call]
    assert image.grad is not None
    slope = image.grad.norm()
    step = image.grad / slope * 0.05  # along the steepest way, where rounding and kinks matter least
    with torch.no_grad():
        up, down = (expert.embed(image + sign * step).square().sum() for sign in (1, -1))
    assert float(up - down) / 0.1 == pytest.approx(float(slope), rel=0.1)
    assert expert.info.dim == 128
    assert expert.embed(torch.rand(0, 3, 9, 9)).shape == (0, 128)
