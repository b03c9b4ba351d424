"""Single checks behind the alarms, on files whose content is known."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, PngImagePlugin

import audit_mutants
from audit_mutants import HONEST, MUTANTS, SIZE, Mutant, audited, caught
from tests.audit.folders import blur, changed, market, person, plain
from tests.methods.disguises import tiny_disguise_file
from tests.methods.tiny import tiny_model_file
from veilkit.audit import run_audit
from veilkit.audit.alarms import ALARMS
from veilkit.audit.alarms.files import inspect
from veilkit.audit.alarms.secrets import check_secrets
from veilkit.audit.alarms.selftest import check_auditor
from veilkit.audit.inputs.hash_names import named_by_hash
from veilkit.configs import as_dict
from veilkit.key import read_or_create_key
from veilkit.media.reading import Limits
from veilkit.methods import METHODS
from veilkit.pipeline.manifest import Manifest
from veilkit.pipeline.protect import protect

PICTURE = Image.fromarray(person(0, 0))


def saved(image: Image.Image = PICTURE, kind: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)  # type: ignore[arg-type]
    return buffer.getvalue()


def _named() -> PngImagePlugin.PngInfo:
    text = PngImagePlugin.PngInfo()
    text.add_text("Author", "somebody")
    return text


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "BMP", "TIFF"])
def test_a_plain_file_holds_pixels_only(kind: str) -> None:
    assert inspect(saved(kind=kind)) == (False, set())


def test_what_is_added_to_a_file_is_found() -> None:
    exif = Image.Exif()
    exif[0x010E] = "somebody"
    assert inspect(saved(kind="JPEG", exif=exif))[1] == {"EXIF"}
    assert inspect(saved(kind="JPEG", comment=b"somebody"))[1] == {"comments"}
    assert inspect(saved(kind="JPEG", xmp=b"<x/>"))[1] == {"XMP or other metadata"}
    assert inspect(saved(pnginfo=_named()))[1] == {"text"}
    for kind in ("PNG", "JPEG"):
        assert inspect(saved(kind=kind) + saved())[1] == {"bytes after the picture"}
        assert inspect(saved(kind=kind) + b"\0" * 100)[1] == set()  # padding


def test_pictures_that_are_not_measured_are_looked_into_as_well(tmp_path: Path) -> None:
    originals = market(tmp_path / "o")
    release = changed(originals, tmp_path / "p", blur)
    options = {"expert": "histogram", "judge": "histogram", "attacks": ["linkage"]}
    assert run_audit(originals, release, out=tmp_path / "a", **options).alarms == ()
    training = sorted((release / "bounding_box_train").iterdir())
    training[0].write_bytes(training[0].read_bytes() + b"somebody")
    (release / "extra.png").write_bytes(saved(pnginfo=_named()))
    alarms = run_audit(originals, release, out=tmp_path / "a", **options).alarms
    assert [alarm.name for alarm in alarms] == ["metadata", "left unprotected"]
    assert "1 picture beside the protected ones shows an original" in alarms[1].text
    assert "bytes after the picture (1)" in alarms[0].text
    assert "text (1)" in alarms[0].text


def test_transparency_counts_where_it_is_used() -> None:
    opaque = PICTURE.convert("RGBA")
    assert inspect(saved(opaque)) == (False, set())
    opaque.putpixel((0, 0), (1, 2, 3, 254))
    assert inspect(saved(opaque)) == (True, set())


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manifest.json", json.dumps({"config": {"seed": 5}})),
        ("facts.json", json.dumps([{"random_state": 5}])),
        ("run.toml", 'method = "blur"\nsecret = "swordfish"\n'),
        ("run.log", "starting\nnoise seed: 5\n"),
        ("notes.txt", f"veilkit-key-1 {'a' * 64}"),
        ("deep/er/facts.json", json.dumps({"a": [{"b": {"noise_seed": [5]}}]})),
        ("facts.json", json.dumps({"seed": {"value": 5}})),
        ("facts.json", json.dumps({"noiseSeed": 0})),
        ("facts.json", '{"seed": 5, and so on'),
        ("facts.json", "\ufeff" + json.dumps({"seed": 5})),
        ("facts.json", '{"a":' * 100_000 + '{"seed": 5}'),
        ("log.jsonl", '{"step": 1}\n{"step": 2, "run": {"seed": 5}}\n'),
        ("run.yaml", "run: {method: noise, seed: 5}\n"),
        ("run.yaml", "training:\n  key: swordfish\n"),
        ("card.json", json.dumps({"training": {"key": "swordfish"}})),
        ("run.txt", "made with noise (seed=5) yesterday"),
        ("release.key", f"veilkit-key-1 {'a' * 64}"),
        ("model.bin", f"\x00 veilkit-key-1 {'a' * 64} \x00"),
        ("manifest.json", json.dumps({"reproducible_by": "anyone"})),
        ("manifest.json", json.dumps({"method": "disguise", "seed": 5, "config": {"seed": 0}})),
        ("manifest.json", json.dumps({"method": "disguise", "config": {"seed": 0, "run": {"seed": 5}}})),
        ("manifest.json", json.dumps({"method": "privacyreid", "config": {"reid": {"seed": 0}, "seed": 5}})),
        ("manifest.json", json.dumps({"method": "noise", "config": {"sigma": 1, "seed": 5}})),
        ("other.json", json.dumps({"method": "disguise", "config": {"seed": 5}})),
        ("manifest.json", json.dumps({"method": ["disguise"], "config": {"seed": 5}})),
    ],
)
def test_a_published_secret_is_found(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    assert [alarm.name for alarm in check_secrets(tmp_path, None)] == ["secret published"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("manifest.json", json.dumps({"seed": None, "key_commitment": "ab12", "key": ""})),
        ("manifest.json", "not JSON: seed"),
        ("keys.txt", "who holds the keys may open it"),
        ("labels.csv", "path,identity\nseed,1\n"),
        ("SHA256SUMS", "aa  seed.png\n"),
        ("seed.png", "seed=5"),
        ("manifest.json", json.dumps({"method": "avih", "config": {"key": True}})),
        ("card.json", json.dumps({"training": {"seed": 5, "swapper": {"random_state": 5}}})),
        ("facts.json", json.dumps({"card": {"steps": 100, "seeds": [5, 6]}})),
        ("facts.json", json.dumps({"public_key": "age1abc", "monkey": "5", "linseed": 5})),
    ],
)
def test_what_is_no_secret_is_not(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert not [*check_secrets(tmp_path, None)]


@pytest.mark.parametrize("name", list(METHODS))
def test_a_keyed_release_of_any_method_publishes_no_secret(name: str, tmp_path: Path) -> None:
    """The manifest of each method as `protect` writes it: a model's training may have had a seed."""
    manifest = Manifest(
        veilkit="0", method=name, config=as_dict(METHODS[name].default) | {"model": "ab" * 32}, files=1,
        key_commitment="cd" * 32, reproducible_by="the key's holder", names="pseudonyms", image_format="png",
        sums_sha256="ef" * 32,
    )  # fmt: skip
    (tmp_path / "manifest.json").write_text(manifest.text())
    assert not [*check_secrets(tmp_path, None)]
    seeded = manifest.model_copy(update={"seed": 0, "key_commitment": None, "reproducible_by": "anyone"})
    (tmp_path / "manifest.json").write_text(seeded.text())
    text = next(check_secrets(tmp_path, None)).text
    assert "a seed in manifest.json, the statement that anyone can reproduce it in manifest.json" in text


def test_keyed_releases_of_disguise_and_privacyreid_raise_no_alarm_of_a_training_seed(tmp_path: Path) -> None:
    plain(tmp_path / "o", people=2, shots=2, size=(32, 32))
    for name, model in (("disguise", tiny_disguise_file()), ("privacyreid", tiny_model_file())):
        release = tmp_path / name
        protect(tmp_path / "o", release, name, model=Path(model), labels="folder")
        assert '"seed": 0' in (release / "manifest.json").read_text()
        assert not [*check_secrets(release, tmp_path / f"{name}.private" / "key")]


def test_the_key_itself_is_found_in_any_text(tmp_path: Path) -> None:
    key = tmp_path / "private" / "key"
    read_or_create_key(key)
    release = tmp_path / "release"
    release.mkdir()
    assert not [*check_secrets(release, key)]
    (release / "about.md").write_text(f"made with {key.read_text().split()[1]} today")
    assert "the key itself" in next(check_secrets(release, key)).text


def test_hashes_of_files_paths_and_names_are_recognised_and_nothing_else(tmp_path: Path) -> None:
    import base64
    import hashlib

    originals = plain(tmp_path, people=2, shots=2)
    paths = ["p0/0-0.png", "p0/0-1.png", "p1/1-0.png", "p1/1-1.png"]
    made = {
        paths[0]: hashlib.sha256((originals / paths[0]).read_bytes()).hexdigest()[:16],
        paths[1]: hashlib.md5(paths[1].encode()).hexdigest(),
        paths[2]: base64.b32encode(hashlib.sha1(b"1-0.png").digest()).decode().lower(),
    }
    other = "0123456789abcdef"
    found = named_by_hash(originals, paths, [f"{stem}.png" for stem in (*made.values(), other)], Limits())
    assert found == {path: f"{stem}.png" for path, stem in made.items()}
    assert named_by_hash(originals, paths, ["p0/0-0.png", "abcdefghij.png"], Limits()) == {}


def test_the_auditor_passes_its_own_tests() -> None:
    assert not [*check_auditor()]


def test_a_search_that_ignores_who_asks_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from veilkit.attacks import search

    sound = search.retrieval
    monkeypatch.setattr(
        search, "retrieval", lambda q, g, *rest, **more: sound(np.roll(q, 1, axis=0), g, *rest, **more)
    )
    assert {alarm.name for alarm in check_auditor()} == {"metric"}


@pytest.fixture
def originals(tmp_path: Path) -> Path:
    return plain(tmp_path / "o", people=10, shots=2, size=(SIZE[1], SIZE[0]))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audit_mutants.people(tmp_path_factory.mktemp("generated"), 0, identities=10)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_mutant_is_caught_by_name(
    mutant: Mutant, generated: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in mutant.needs:
        pytest.importorskip(module, reason=f"{module} is not installed")
    monkeypatch.setattr(audit_mutants, "MANY", 60)
    work = tmp_path / "work"
    work.mkdir()
    yes, alarms = caught(mutant, generated, work)
    assert yes, alarms
    assert mutant.alarm in ALARMS


@pytest.mark.parametrize("kind", [kind for kind in sorted(HONEST) if kind != "patches"])  # which takes its time
def test_an_honest_release_raises_no_alarm(kind: str, originals: Path, tmp_path: Path) -> None:
    result = audited(originals, HONEST[kind](originals, tmp_path / "r"), tmp_path / "a")
    assert result.alarms == ()


def test_there_are_twenty_four_and_all_alarms_are_told_in_words(originals: Path, tmp_path: Path) -> None:
    assert len(MUTANTS) == 24
    release = audit_mutants.changed(originals, tmp_path / "r", lambda pixels, _: pixels)
    result = audited(originals, release, tmp_path / "a")
    assert [alarm.name for alarm in result.alarms] == ["unchanged"]
    assert "20 of 20 protected pictures" in result.alarms[0].text
    for file in ("report.html", "audit.md"):
        assert result.alarms[0].text in (tmp_path / "a" / file).read_text(), file
