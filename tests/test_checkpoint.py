"""Model files keep their content to the bit and refuse everything that is not what was asked for."""

import pickle
import struct

import pytest
import torch
from torch import nn

from veilkit.checkpoint import content_sha256, half_precision, load_checkpoint, load_weights, save_checkpoint
from veilkit.errors import CheckpointError, DestinationError

TENSORS = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor(7), "c": torch.tensor([0.5], dtype=torch.bfloat16)}
CONFIG = {"width": 0.5, "size": [128, 64], "name": "x"}


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.safetensors"
    save_checkpoint(path, TENSORS, CONFIG, "test")
    return path


def test_content_survives(model):
    loaded = load_checkpoint(model, "test")
    assert loaded.config == CONFIG
    assert loaded.tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert loaded.tensors[name].dtype == tensor.dtype
        assert torch.equal(loaded.tensors[name], tensor)


def test_equal_content_gives_equal_bytes(tmp_path):
    files = [tmp_path / f"{i}.safetensors" for i in range(8)]
    for file in files:
        save_checkpoint(file, TENSORS, CONFIG, "test")
    assert len({file.read_bytes() for file in files}) == 1


def test_returned_hash_is_accepted_and_another_is_not(tmp_path):
    path = tmp_path / "m.safetensors"
    sha256 = save_checkpoint(path, TENSORS, CONFIG, "test")
    assert load_checkpoint(path, "test", sha256.upper()).sha256 == sha256
    with pytest.raises(CheckpointError, match="expected SHA-256 0000"):
        load_checkpoint(path, "test", "0" * 64)


def test_hash_depends_on_everything_but_the_order():
    original = content_sha256(TENSORS, CONFIG, "test")
    assert content_sha256(dict(reversed(TENSORS.items())), CONFIG, "test") == original
    changed = [
        ({**TENSORS, "b": torch.tensor(8)}, CONFIG, "test"),
        ({**TENSORS, "a": TENSORS["a"].reshape(3, 2)}, CONFIG, "test"),
        ({**TENSORS, "b": torch.tensor(7, dtype=torch.int32)}, CONFIG, "test"),
        (TENSORS, {**CONFIG, "width": 1.0}, "test"),
        (TENSORS, CONFIG, "other"),
    ]
    assert len({original, *(content_sha256(*parts) for parts in changed)}) == len(changed) + 1


def test_other_kind_is_refused(model):
    with pytest.raises(CheckpointError, match="kind 'reid', but got 'test'"):
        load_checkpoint(model, "reid")


def test_flipped_bit_is_noticed(model):
    data = bytearray(model.read_bytes())
    data[-1] ^= 1
    model.write_bytes(data)
    with pytest.raises(CheckpointError, match="does not match its own SHA-256"):
        load_checkpoint(model, "test")


def test_altered_config_is_noticed(model):
    data = model.read_bytes()
    assert b"0.5" in data
    model.write_bytes(data.replace(b"0.5", b"0.6"))
    with pytest.raises(CheckpointError, match="SHA-256"):
        load_checkpoint(model, "test")


def test_pickles_are_refused_by_name(tmp_path):
    bare, archive = tmp_path / "bare.pt", tmp_path / "archive.pt"
    bare.write_bytes(pickle.dumps({"a": 1}))
    torch.save({"a": torch.zeros(1)}, archive)
    for path in (bare, archive):
        with pytest.raises(CheckpointError, match="pickle files are not loaded"):
            load_checkpoint(path, "test")


@pytest.mark.parametrize("data", [b"", b"hello", struct.pack("<Q", 2**60) + b"{}"])
def test_damaged_files_are_refused(tmp_path, data):
    path = tmp_path / "damaged.safetensors"
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match="not a safetensors file"):
        load_checkpoint(path, "test")


def test_truncated_file_is_refused(model):
    model.write_bytes(model.read_bytes()[:-3])
    with pytest.raises(CheckpointError):
        load_checkpoint(model, "test")


def test_foreign_safetensors_are_refused(tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "foreign.safetensors"
    save_file({"a": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError, match="written by veilkit"):
        load_checkpoint(path, "test")


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(CheckpointError, match="no such model file"):
        load_checkpoint(tmp_path / "absent.safetensors", "test")


def test_mismatched_architecture_is_listed():
    module = nn.Linear(3, 2)
    with pytest.raises(CheckpointError) as caught:
        load_weights(module, {"weight": torch.zeros(2, 4), "extra": torch.zeros(1)}, "file")
    message = str(caught.value)
    assert "missing bias" in message
    assert "unexpected extra" in message
    assert "weight is (2, 4) instead of (2, 3)" in message


def test_half_precision_halves_only_float32_and_loads_back():
    module = nn.BatchNorm1d(4)
    with torch.no_grad():
        module.weight.copy_(torch.tensor([1.0, 0.5, -2.0, 0.25]))
    stored = half_precision(module.state_dict())
    assert stored["weight"].dtype == torch.float16
    assert stored["num_batches_tracked"].dtype == torch.int64
    other = nn.BatchNorm1d(4)
    load_weights(other, stored, "file")
    assert other.weight.dtype == torch.float32
    assert torch.equal(other.weight, module.weight)


def test_write_is_atomic_and_leaves_no_scraps(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    save_checkpoint(path, TENSORS, CONFIG, "test")
    before = path.read_bytes()

    def fail(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(DestinationError, match="No space left"):
        save_checkpoint(path, {"a": torch.zeros(9)}, CONFIG, "test")
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
