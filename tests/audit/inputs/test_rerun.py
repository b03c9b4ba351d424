"""A protection that an attacker runs again: with a model file where it has learned, and never with a wrong one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.audit.folders import plain
from tests.methods.disguises import TINY, tiny_disguise_file, tiny_model
from tests.methods.experts import tiny_expert_file
from tests.methods.tiny import tiny_model_file
from veilkit.audit.inputs.rerun import NO_MODEL, FreshKeys, method_of, one_identity
from veilkit.audit.inputs.spec import read_spec
from veilkit.audit.matrix import run_matrix
from veilkit.audit.report.model import command
from veilkit.audit.run import run_audit
from veilkit.errors import CheckpointError
from veilkit.experts import load_expert
from veilkit.experts.names import file_sha256
from veilkit.methods.disguise.identity import OwnIdentity
from veilkit.methods.disguise.method import Disguise
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.pipeline.manifest import read_manifest
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness

MODEL = Path(tiny_disguise_file())


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of ten people, each taken for a face, disguised with less noise than the model file says."""
    root = tmp_path_factory.mktemp("disguised")
    plain(root / "originals", people=10, size=(32, 32))
    protect(root / "originals", root / "release", "disguise", model=MODEL, settings={"transform.noise": 0.5}, seed=1,
            labels="folder")  # fmt: skip
    return root / "release"


def test_the_model_is_run_under_the_settings_of_the_release(release: Path) -> None:
    manifest = read_manifest(release)
    assert method_of(manifest) is None
    method = method_of(manifest, MODEL)
    assert isinstance(method, Disguise)
    assert method.config.transform.noise == 0.5
    images = Randomness.from_seed(2).uniform(2, 3, 32, 32)
    again = FreshKeys(method, 0)
    assert not torch.equal(again(images, 0), again(images, 1))
    assert torch.equal(again(images, 1), FreshKeys(method, 0)(images, 1))


def test_one_identity_is_everybodys(release: Path) -> None:
    method = method_of(read_manifest(release), MODEL)
    alike = one_identity(method, 0)
    assert alike is not None
    face, images = Randomness.from_seed(3).uniform(3, 32, 32), Randomness.from_seed(4).uniform(3, 3, 32, 32)
    made = alike(torch.stack([face, face]))
    assert torch.equal(made[0], made[1])  # noise on the identity would make them differ
    assert torch.equal(alike(images)[:1], alike(images[:1]))
    assert one_identity(None, 0) is None


def test_the_own_expert_sees_the_face_and_nothing_where_there_is_none(release: Path) -> None:
    method = method_of(read_manifest(release), MODEL)
    assert isinstance(method, Disguise)
    eyes, images = OwnIdentity(method), Randomness.from_seed(5).uniform(2, 3, 32, 32)
    found = eyes.embed(images)
    assert found.shape == (2, TINY.transform.dim)
    assert torch.allclose(found.norm(dim=1), torch.ones(2), atol=1e-5)
    small = OwnIdentity(method.reconfigured(None, {"least_side": 64}))  # no face is large enough to be aligned
    assert torch.equal(small.embed(images), torch.zeros(2, eyes.dim))
    assert eyes.embed(images[:0]).shape == (0, eyes.dim)


def test_a_wrong_model_is_refused(release: Path, tmp_path: Path) -> None:
    manifest = read_manifest(release)
    assert manifest is not None
    config = replace(TINY, identity=(tiny_expert_file("vit-small"),))
    other = tmp_path / "other.safetensors"
    Disguise(config, tiny_model(config, (load_expert(config.identity[0]),), seed=1)).save(other)  # type: ignore[arg-type]
    with pytest.raises(CheckpointError, match="is not the model that made the release"):
        method_of(manifest, other)
    with pytest.raises(CheckpointError):
        method_of(manifest, Path(tiny_model_file()))
    changed = manifest.model_copy(update={"config": {**manifest.config, "batch": 99}})
    with pytest.raises(CheckpointError, match="cannot be run as the release was made"):
        method_of(changed, MODEL)
    extra = manifest.model_copy(update={"config": {**manifest.config, "hair": "red"}})
    with pytest.raises(
        CheckpointError, match=r"its manifest has other settings \(hair: red there, None in the model\)"
    ):
        method_of(extra, MODEL)
    with pytest.raises(CheckpointError, match="which blur made, without a model"):
        method_of(manifest.model_copy(update={"method": "blur"}), MODEL)
    with pytest.raises(CheckpointError, match="leave it out"):
        method_of(None, MODEL)
    reversible = manifest.model_copy(update={"method": "privacyreid"})
    with pytest.raises(CheckpointError):  # even where it would not be run
        method_of(reversible, Path(tiny_model_file()))
    with pytest.raises(CheckpointError):
        method_of(reversible, tmp_path / "missing.safetensors")


def test_a_calibrated_method_may_name_its_model_in_a_spec_and_a_wrong_one_costs_one_audit(tmp_path: Path) -> None:
    plain(tmp_path / "originals", people=8)
    calibrated = tmp_path / "pixelfade.safetensors"
    PixelFade.configured(settings={"expert": tiny_expert_file(), "spread": 1.0, "steps": 2}).save(calibrated)
    protect(tmp_path / "originals", tmp_path / "blurred", "blur", seed=0, labels="folder")
    (tmp_path / "audit.toml").write_text(
        'attacks = ["own_original", "averaging"]\n[[datasets]]\nname = "people"\noriginals = "originals"\n'
        f'[[releases]]\nname = "blurred"\nprotected = "blurred"\nseed = 0\nmodel = "{MODEL}"\n'
        f'[[methods]]\nname = "faded"\nmethod = "pixelfade"\nmodel = "{calibrated}"\n'
    )
    blurred, faded = run_matrix(read_spec(tmp_path / "audit.toml"), tmp_path / "out")
    assert blurred.result is None
    assert "without a model" in blurred.why
    assert faded.result is not None, faded.why


@pytest.mark.slow
def test_an_audit_with_the_model_makes_the_attacks_that_need_it(release: Path, tmp_path: Path) -> None:
    wanted = ["attribute_path", "averaging", "identity_inversion"]
    options = {"seed": 1, "labels": "folder", "expert": "histogram", "attacks": wanted, "learn": 20,
               "out": tmp_path / "out"}  # fmt: skip
    originals = release.parent / "originals"
    without = {each.attack: each for each in run_audit(originals, release, **options).attacks}
    assert not any(without[name].applicable for name in wanted)
    assert all(NO_MODEL in without[name].missing for name in wanted)
    result = run_audit(originals, release, model=MODEL, **options)
    assert result.config["model_sha256"] == file_sha256(MODEL)
    assert "--model MODEL" in command(result)
    held = {each.attack: each for each in result.attacks}
    assert all(held[name].applicable for name in wanted)
    assert held["identity_inversion"].details["recogniser"] == "disguise-identity"
