from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result
from PIL import Image
from typer.testing import CliRunner

import deface_folder
from tests.audit.folders import blur, changed, noise, person, plain
from tests.conftest import random_picture
from veilkit.audit.alarms.pairs import Related, own_ranks, related, smoothness
from veilkit.audit.inputs.items import read_boxes
from veilkit.cli import app
from veilkit.pipeline.ledger_queries import remembered_sources
from veilkit.pipeline.pairing import pair
from veilkit.pipeline.protect import protect

PICTURES = [person(number, 0) for number in range(12)]
OTHERS = [person(number + 50, 0) for number in range(12)]


def audit(originals: Path, protected: Path, *options: object) -> Result:
    words = [
        "audit",
        originals,
        protected,
        "--expert",
        "histogram",
        "--judge",
        "histogram",
        "--verbose",
        "--budget",
        "none",
        *options,
    ]
    return CliRunner().invoke(app, [str(word) for word in words])


def others(root: Path, like: Path) -> Path:
    """Pictures of nobody else's, under the same names."""
    for number, file in enumerate(sorted(like.rglob("*.png"))):
        target = root / file.relative_to(like)
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(person(1000 + number, 7)).save(target)
    return root


def test_unrelated_pictures_of_the_same_names_are_told_first_with_exit_code_3(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o")
    done = audit(others(tmp_path / "q", originals), changed(originals, tmp_path / "p", blur))
    assert done.exit_code == 3, done.output
    assert done.stdout.startswith("ALARM (wrong pairs)")
    assert json.loads((tmp_path / "p.audit" / "audit.json").read_text())["alarms"][0]["name"] == "wrong pairs"
    assert "wrong pairs" in (tmp_path / "p.audit" / "report.html").read_text()
    assert audit(originals, tmp_path / "p").exit_code == 0


def test_shuffled_names_are_told(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=12, shots=1)
    release = changed(originals, tmp_path / "p", blur)
    files = sorted(release.rglob("*.png"))
    held = [file.read_bytes() for file in files]
    for file, data in zip(files, held[5:] + held[:5], strict=True):
        file.write_bytes(data)
    assert audit(originals, release).exit_code == 3


def test_the_ledger_tells_originals_from_others_even_under_noise(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    for how, word in (
        (["--key", tmp_path / "k" / "key"], {"key": tmp_path / "k" / "key"}),
        (["--seed", 1], {"seed": 1}),
    ):
        release = tmp_path / how[0].strip("-")
        protect(originals, release, "noise", settings={"sigma": 3.0}, labels="folder", **word)
        before = {file.name for file in (tmp_path / "k").iterdir()}
        right = audit(originals, release, *how)
        assert right.exit_code == 0, right.output
        assert "belong together" not in right.output
        wrong = audit(others(tmp_path / f"q{release.name}", originals), release, *how)
        assert wrong.exit_code == 3, wrong.output
        assert "12 originals are not what 12 protected pictures were made of" in wrong.output
        assert {file.name for file in (tmp_path / "k").iterdir()} == before  # reading a ledger leaves nothing
    Image.fromarray(person(900, 0)).save(originals / "p0" / "0-0.png")
    done = audit(originals, tmp_path / "key", "--key", tmp_path / "k" / "key")
    assert done.exit_code == 3
    assert "1 original is not what 12 protected pictures were made of" in done.output


def test_where_nobody_can_tell_that_is_said_and_is_no_error(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o")
    done = audit(originals, changed(originals, tmp_path / "p", noise))
    assert done.exit_code == 0, done.output
    assert "nothing here shows that these pairs belong together" in done.output


def test_no_pairs_are_told_first_with_exit_code_3(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    release = changed(originals, tmp_path / "p", blur)
    for number, file in enumerate(sorted(release.rglob("*.png"))):
        file.rename(file.with_name(f"made{number}.png"))
    done = audit(originals, release)
    assert done.exit_code == 3, done.output
    assert "ALARM (no pairs)" in done.output
    assert done.output.index("ALARM (no pairs)") < done.output.index("L0")


def test_a_few_names_in_common_are_no_release_of_these_originals(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    release = changed(originals, tmp_path / "p", blur)
    for number, file in enumerate(sorted(release.rglob("*.png"))[2:]):
        file.rename(file.with_name(f"made{number}.png"))
    done = audit(originals, release)
    assert done.exit_code == 3, done.output
    assert "only 2 of 12 protected pictures have an original of their name here" in done.output


def test_folders_that_are_swapped_by_their_names_are_told(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    release = changed(originals, tmp_path / "p", blur)
    for file in sorted(release.rglob("*.png")):
        file.rename(file.with_name(f"{file.stem}_anonymized.png"))
    assert audit(originals, release).exit_code == 0
    done = audit(release, originals, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert "are the two swapped" in done.output


def test_a_spec_with_wrong_pairs_ends_with_exit_code_3(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o")
    changed(originals, tmp_path / "p", blur)
    others(tmp_path / "q", originals)
    shutil.copytree(tmp_path / "p", tmp_path / "p2")
    (tmp_path / "audit.toml").write_text(
        'attacks = ["own_original"]\n[[experts]]\nexpert = "histogram"\njudge = "histogram"\n'
        '[[datasets]]\nname = "right"\noriginals = "o"\n[[datasets]]\nname = "wrong"\noriginals = "q"\n'
        '[[releases]]\nname = "a"\nprotected = "p"\ndataset = "right"\n'
        '[[releases]]\nname = "b"\nprotected = "p2"\ndataset = "wrong"\n'
    )
    done = CliRunner().invoke(app, ["audit", "--spec", str(tmp_path / "audit.toml")])
    assert done.exit_code == 3, done.output
    assert done.output.count("ALARM (wrong pairs)") == 1


@pytest.mark.parametrize("count", [1, 3, 12])
def test_pixels_tell_pairs_from_strangers(count: int) -> None:
    made = [blur(picture, 0) for picture in PICTURES[:count]]
    assert related(PICTURES[:count], made) is Related.YES
    if count > 3:
        assert related(OTHERS[:count], made) is Related.NO
    assert related(OTHERS[:count], made) is not Related.YES
    static = [noise(picture, number) for number, picture in enumerate(PICTURES[:count])]
    assert related(PICTURES[:count], static) is Related.UNKNOWN
    assert related(PICTURES[:count], [np.zeros_like(each) for each in made]) is Related.UNKNOWN
    assert related([], []) is Related.UNKNOWN


def test_ranks_of_random_pairs_are_one_half_on_average() -> None:
    random = np.random.default_rng(0)
    found = [own_ranks(random.normal(size=(40, 9)), random.normal(size=(40, 9)), np.arange(40)).mean()
             for _ in range(50)]  # fmt: skip
    assert abs(float(np.mean(found)) - 0.5) < 0.03


def test_right_pairs_are_not_called_wrong_and_strangers_not_right() -> None:
    """Weak and strong protections of 20 sets of pictures, by groups of shots that are alike."""
    for seed in range(20):
        raw = [random_picture(100 * seed + number) for number in range(16)]
        strangers = [random_picture(9000 + 100 * seed + number) for number in range(16)]
        for change in (blur, lambda pixels, number: pixels // 2 + noise(pixels, number) // 2):
            made = [change(picture, number) for number, picture in enumerate(raw)]
            assert related(raw, made, np.arange(16) // 2) is Related.YES
            assert related(strangers, made, np.arange(16) // 2) is not Related.YES


def test_smoothness_tells_pictures_from_noise() -> None:
    assert smoothness(random_picture(0)) > 0.5
    assert abs(smoothness(noise(random_picture(0), 0))) < 0.2
    assert smoothness(np.full((8, 8, 3), 7, dtype=np.uint8)) == 0
    assert smoothness(np.zeros((1, 1, 3), dtype=np.uint8)) == 0


def test_a_damaged_ledger_remembers_nothing(tmp_path: Path) -> None:
    (tmp_path / "key.0.ledger").write_bytes(b"no ledger" * 1000)
    assert remembered_sources(tmp_path, {"a.png": "00"}) == {}
    assert remembered_sources(tmp_path / "nowhere", {"a.png": "00"}) == {}


STAND_IN = """#!/bin/sh
for file in "$1"/*.png; do cp "$file" "${file%.png}_anonymized.png"; done
"""


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    for name, value in {"PEOPLE": 4, "IMAGES": 1, "TOGETHER": 2, "SIZE": 64}.items():
        monkeypatch.setattr(deface_folder, name, value)
    return deface_folder.photographs(tmp_path)


def command(folder: Path, text: str) -> str:
    script = folder / "stand-in"
    script.write_text(text)
    script.chmod(0o755)
    return str(script)


def test_what_deface_writes_is_paired_by_its_word_and_boxes_lie_in_the_photographs(
    photos: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, faces = photos
    release = deface_folder.defaced(command(tmp_path, STAND_IN), folder, tmp_path / "defaced")
    names = [sorted(file.name for file in each.iterdir()) for each in (folder, release)]
    assert len(names[0]) == len(names[1]) == 2
    pairs = dict(pair(names[0], names[1], None, (), lambda: {}).pairs)
    assert pairs == {name: name.replace(".png", "_anonymized.png") for name in names[0]}
    boxes = read_boxes(deface_folder.boxes_file(faces, tmp_path / "boxes.csv"))
    assert len(boxes) == 4
    assert {box.path for box in boxes} == set(names[0])
    assert {box.identity for box in boxes} == set(faces.people)
    assert deface_folder.changed(faces, folder, release) == 0
    blank = release / names[1][0]
    with Image.open(blank) as image:
        Image.fromarray(np.zeros((image.height, image.width, 3), np.uint8)).save(blank)
    assert deface_folder.changed(faces, folder, release) == 2


def test_a_deface_that_fails_or_is_absent_ends_the_benchmark(
    photos: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="wrote 0 pictures and ended with 3"):
        deface_folder.defaced(command(tmp_path, "#!/bin/sh\nexit 3\n"), photos[0], tmp_path / "defaced")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["deface_folder.py"])
    with pytest.raises(SystemExit, match="deface is not installed"):
        deface_folder.main()


def test_the_row_says_how_pictures_were_paired_and_what_was_found() -> None:
    attack = {"attack": "linkage", "applicable": True, "invalid": [], "details": {"chance": {"rank-1": 0.1}},
              "scores": [{"metric": "rank-1", "value": 0.25}]}  # fmt: skip
    result = {"paired_by": "by name", "attacks": [attack, {**attack, "attack": "own_original", "invalid": ["weak"]}]}
    assert deface_folder.told(result, 4, 3) == (
        "paired by name; deface changed 3 of 4 faces; linkage rank-1 0.250, chance 0.100; "
        "own_original rank-1 0.250, chance 0.100, INVALID"
    )
