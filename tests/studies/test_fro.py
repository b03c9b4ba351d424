"""The study of FRO in the smallest: every cell is computed once, kept, and refused by another study."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studies.fro.attacks import WITHOUT_SHADOWS, attack_synthetic
from studies.fro.cells import FroCells
from studies.fro.shadows import BY_SHADOWS, ShadowStudyConfig, shadow_attack, shadow_parts
from studies.fro.splits import hold_back
from tests.audit.folders import person
from tests.studies.harness import Done
from veilkit.attacks import UNPAIRED_ATTACKS
from veilkit.datasets.folder import load_folder
from veilkit.errors import ConfigError, DataError
from veilkit.experts import load_expert
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig
from veilkit.types import Record, Split

Find = Callable[[str], Done]


@pytest.mark.slow
def test_figures_of_features_are_drawn(done: Find) -> None:
    made = done("fro")
    assert len(list(made.folder.glob("tsne-*.svg"))) == 10
    pool = made.cell("pool")
    assert 0 <= pool["rank-1"][1] <= pool["rank-1"][0] <= pool["rank-1"][2] <= 1


def test_of_each_person_and_camera_the_last_pictures_are_held_back_but_never_all() -> None:
    records = [Record(f"{p}_c{c}_{n}.png", p, c) for p in "ab" for c in "12" for n in range(3)]
    records.append(Record("c_c1_0.png", "c", "1"))
    split = Split("train", Path("nowhere"), tuple(records))
    trained, unseen = hold_back(split, 1)
    assert {record.path for record in unseen.records} == {f"{p}_c{c}_2.png" for p in "ab" for c in "12"}
    assert {*trained.records, *unseen.records} == set(records)
    assert len(trained) == 9
    assert len(hold_back(split, 5)[0]) == 5
    assert hold_back(split, 0)[0].records == split.records


@pytest.mark.slow
def test_smaller_scales_are_parts_of_the_largest_and_attacked_people_are_apart(done: Find, tmp_path: Path) -> None:
    made = done("fro")
    with made.open(tmp_path, people=4, grid_people=2, scales=(0.5, 1.0, 2.0)) as some:
        _check_parts(some)


def _check_parts(some: FroCells) -> None:
    whole, targets = some.synthetic(2.0)
    parts = [some.synthetic(scale) for scale in (0.5, 1.0)]
    assert [len(whole), *(len(part) for part, _ in parts)] == [16, 4, 8]
    rows = {record.path: row for record, row in zip(whole.records, targets, strict=True)}
    for part, logits in parts:
        assert all(rows[record.path].equal(row) for record, row in zip(part.records, logits, strict=True))
        assert len(part.identities) == 4
    assert {len([r for r in parts[1][0].records if r.identity == who]) for who in whole.identities} == {2}
    groups = [some.members.identities, some.unseen.identities, some.held_out.identities]
    assert groups[0] == groups[1]
    assert not {*groups[0]} & {*groups[2]}


PEOPLE, SIZE = 12, (32, 16)
TINY = ShadowStudyConfig(
    people=4, pictures=2, backbone="osnet-x0.25", size=SIZE, epochs=1, batch=2, preset="paper", steps=1
)  # four people who are trained on, with two pictures each


def pictures(root: Path, people: range, shots: range, *, first: int = 0) -> Split:
    """Folders p0, p1, ... of people in their colours; `first` is the number of the first one's name."""
    for number, identity in enumerate(people):
        (root / f"p{first + number:02}").mkdir(parents=True)
        for shot in shots:
            Image.fromarray(person(identity, shot)).save(root / f"p{first + number:02}" / f"{shot}.png")
    return load_folder(root, "folder", root.name)


def network() -> ReidNetwork:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return ReidNetwork(ReidNetworkConfig("osnet-x0.25", size=SIZE)).eval()


@pytest.fixture
def sets(tmp_path: Path) -> dict[str, Split]:
    """Members and other pictures of them; as many people outside; a release that copies, and one of noise."""
    found = {
        "members": pictures(tmp_path / "members", range(PEOPLE), range(2)),
        "unseen": pictures(tmp_path / "unseen", range(PEOPLE), range(2, 4)),
        "held_out": pictures(tmp_path / "held_out", range(40, 40 + PEOPLE), range(2), first=40),
        "copies": pictures(tmp_path / "copies", range(PEOPLE), range(2)),
        "noise": pictures(tmp_path / "noise", range(PEOPLE), range(2)),
    }
    for index in range(len(found["noise"])):
        noise = np.random.default_rng([9, index]).integers(0, 256, (*SIZE, 3), dtype=np.uint8)
        Image.fromarray(noise).save(found["noise"].file(index))
    return found


def attacked(sets: dict[str, Split], release: str, **changes: object) -> dict:
    generator = torch.Generator().manual_seed(1)
    targets = torch.randn(2 * PEOPLE, PEOPLE, generator=generator)
    if release == "copies":
        targets[torch.arange(2 * PEOPLE), torch.arange(2 * PEOPLE) // 2] += 10
    values = {"members": sets["members"], "unseen": sets["unseen"], "held_out": sets["held_out"]} | changes
    return attack_synthetic(
        **values, release=sets[release], targets=targets, student=network(), recogniser=load_expert("histogram"),
        size=SIZE, seed=0,
    )  # type: ignore[arg-type]  # fmt: skip


def test_copies_are_found_out_and_noise_is_not(sets: dict[str, Split]) -> None:
    leak, nothing = attacked(sets, "copies"), attacked(sets, "noise")
    assert tuple(leak) == tuple(nothing) == WITHOUT_SHADOWS
    assert {*WITHOUT_SHADOWS, *BY_SHADOWS} == set(UNPAIRED_ATTACKS)
    assert json.loads(json.dumps(leak)) == leak
    for name in ("class_linkage", "memorisation", "membership_set_person", "membership_set_picture",
                 "membership_labels_person"):  # fmt: skip
        for found, told in ((leak, True), (nothing, False)):
            assert found[name]["applicable"]
            assert found[name]["invalid"] == []
            headline = found[name]["scores"][0]
            assert (headline["low"] > found[name]["chance"][headline["metric"]]) == told
    for name in ("membership_student_person", "membership_student_picture"):
        assert "no classifier" in leak[name]["note"]
        assert {score["metric"] for score in leak[name]["scores"]} >= {"AUC", "AUC (feature norm)"}
    assert leak["class_linkage"]["note"] == ""


def test_without_unseen_pictures_people_cannot_be_asked_about(sets: dict[str, Split]) -> None:
    found = attacked(sets, "copies", unseen=None)
    assert not found["membership_set_person"]["applicable"]
    assert "all pictures of the training people" in found["membership_set_person"]["reason"]
    assert found["membership_set_person"]["scores"] == []
    assert found["memorisation"]["applicable"]


def test_strangers_in_the_release_are_refused(sets: dict[str, Split]) -> None:
    strange = replace(
        sets["copies"], records=tuple(replace(record, identity="nobody") for record in sets["copies"].records)
    )
    with pytest.raises(DataError, match="24 of 24"):
        attacked({**sets, "copies": strange}, "copies")


def cameras(people: int, shots: int) -> Split:
    """Records by two cameras, which are on no disk."""
    return Split("all", Path(), tuple(
        Record(f"{number:02}_c{camera}_{shot}.png", f"{number:02}", str(camera))
        for number in range(people) for camera in (1, 2) for shot in range(shots)
    ))  # fmt: skip


def test_parts_share_nobody_and_their_cameras_are_the_same() -> None:
    parts = shadow_parts(cameras(17, 5), ShadowStudyConfig(people=4, pictures=3))
    members, unseen, held_out, public = parts.members, parts.unseen, parts.held_out, parts.public
    assert members.identities == unseen.identities == ("00", "01", "02", "03")
    assert len({*members.identities, *held_out.identities, *public.identities}) == 16
    assert (len(members), len(unseen), len(held_out), len(public)) == (12, 12, 12, 48)
    assert not {r.path for r in members.records} & {r.path for r in unseen.records}
    counts = [sorted(record.camera for record in part.records) for part in (members, unseen, held_out)]
    assert counts[0] == counts[1] == counts[2]
    with pytest.raises(DataError, match="expected 20 people"):
        shadow_parts(cameras(17, 5), ShadowStudyConfig(people=5, pictures=3))
    with pytest.raises(ConfigError, match="even number"):
        ShadowStudyConfig(count=7)


@pytest.mark.slow
def test_shadows_are_trained_once_and_found_again(tmp_path: Path) -> None:
    data = pictures(tmp_path / "data", range(16), range(4))
    parts = shadow_parts(data, TINY)
    folder, recogniser = tmp_path / "study", load_expert("histogram")
    found = shadow_attack(parts, TINY, recogniser, folder)
    assert tuple(found) == BY_SHADOWS
    assert json.loads(json.dumps(found)) == found
    for evidence in found.values():
        assert evidence["applicable"]
        assert evidence["scores"][0]["metric"] == "AUC"
        assert "student, LiRA" in evidence["scores"][0]["note"]
        assert evidence["chance"]["AUC"] == 0.5
        assert any("of its own training pictures, where 90% are due" in why for why in evidence["invalid"])
    kept = [*folder.glob("pools/*"), *folder.glob("students/*"), *folder.glob("releases/*/*/*.png")]
    assert len(list(folder.glob("students/*.safetensors"))) == 1 + TINY.count
    assert len(list(folder.glob("releases/*/*/*.png"))) == (1 + TINY.count) * 8
    times = {file: file.stat().st_mtime_ns for file in kept}
    next(folder.glob("students/*.safetensors")).unlink()  # as if it had been stopped before the last
    assert shadow_attack(parts, TINY, recogniser, folder) == found
    changed = [file for file in kept if file.stat().st_mtime_ns != times[file]]
    assert len(changed) == 1
    trusting = shadow_attack(parts, replace(TINY, knows=0.0), recogniser, folder)
    assert not any("training pictures" in why for each in trusting.values() for why in each["invalid"])
    shadow_attack(parts, replace(TINY, steps=2), recogniser, folder)  # another study mixes with nothing of this one
    assert len(list(folder.glob("students/*.safetensors"))) == 2 * (1 + TINY.count)
