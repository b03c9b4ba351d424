from __future__ import annotations

from pathlib import Path

import pytest
import torch

from veilkit.errors import DataError
from veilkit.types import ImageBatch, Record, Release, Split


def test_a_split_lists_its_people_and_cameras_once() -> None:
    records = (
        Record("b/1.jpg", "b", "2"),
        Record("a/1.jpg", "a", None),
        Record("x.jpg"),
        Record("b/2.jpg", "b", "1"),
    )
    split = Split("all", Path("root"), records)
    assert split.identities == ("a", "b")
    assert split.cameras == ("1", "2")
    assert split.file(1) == Path("root/a/1.jpg")
    assert len(split) == 4


@pytest.mark.parametrize(
    "images",
    [torch.zeros(2, 1, 4, 4), torch.zeros(2, 3, 4), torch.zeros(2, 3, 4, 4, dtype=torch.uint8)],
    ids=["one channel", "no batch", "bytes"],
)
def test_a_batch_takes_float_rgb_only(images: torch.Tensor) -> None:
    with pytest.raises(DataError, match="float32 tensor of shape"):
        ImageBatch(images, ("a", "b"))


def test_a_batch_needs_a_name_and_at_most_one_identity_per_image() -> None:
    images = torch.zeros(2, 3, 4, 4)
    with pytest.raises(DataError, match="one item name per image"):
        ImageBatch(images, ("a",))
    with pytest.raises(DataError, match="one identity per image"):
        ImageBatch(images, ("a", "b"), ("p",))
    assert ImageBatch(images, ("a", "b")).identities == (None, None)


def test_a_release_holds_something_and_says_whether_it_is_paired() -> None:
    with pytest.raises(DataError, match="images or features"):
        Release()
    with pytest.raises(DataError, match="one source index per output"):
        Release(images=torch.zeros(2, 3, 4, 4), source_index=(0,))
    assert not Release(images=torch.zeros(2, 3, 4, 4)).paired
    assert Release(features=torch.zeros(2, 8), source_index=(1, 0)).paired
