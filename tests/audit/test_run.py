"""Audits of small folders whose answers are known."""

from __future__ import annotations

import dataclasses
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.audit.folders import blur, changed, grey, market, noise, person, plain, same
from tests.methods.tiny import tiny_model_file
from veilkit.audit import AuditResult, read_audit, run_audit
from veilkit.audit.report.terminal import lines as terminal_lines
from veilkit.audit.verdicts.verdict import Grade
from veilkit.errors import CheckpointError, DataError, UsageError
from veilkit.experts import load_expert
from veilkit.experts.base import ExpertInfo
from veilkit.experts.builtin import HistogramEmbedder
from veilkit.methods.learned import decoder_beside
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover


def audit(originals: Path, protected: Path, **options: object) -> AuditResult:
    return run_audit(originals, protected, expert="histogram", judge="histogram", **options)  # type: ignore[arg-type]


def rank1(result: AuditResult, by: str, setting: str) -> float:
    score = result.score(by, setting, "rank-1")  # type: ignore[arg-type]
    assert score is not None
    return score.value


def test_where_nothing_is_protected_all_settings_agree(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o")
    result = audit(originals, changed(originals, tmp_path / "p", same))
    settings = {setting: rank1(result, "judge", setting) for setting in
                ("raw-raw", "raw-protected", "protected-raw", "protected-protected")}  # fmt: skip
    assert len(set(settings.values())) == 1
    assert settings["raw-raw"] > 0.9
    ssim = result.score("images", "protected to original", "SSIM")
    assert ssim is not None
    assert ssim.value == pytest.approx(1.0, abs=1e-3)
    assert any("24 protected pictures equal their originals" in note for note in result.notes)
    assert any(each.what == "PSNR" for each in result.unmeasured)
    assert not {"stock_recogniser", "linkage", "own_original"} & result.invalid.keys()


def test_noise_leaves_chance_and_blur_less_than_before(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=12)
    noisy = audit(originals, changed(originals, tmp_path / "n", noise))
    stock = noisy.evidence("stock_recogniser")
    assert stock is not None
    assert stock.invalid == ()
    assert stock.scores[0].low <= stock.details["chance"]["rank-1"] <= stock.scores[0].high
    assert rank1(noisy, "judge", "raw-raw") > 0.9
    blurred = audit(originals, changed(originals, tmp_path / "b", blur))
    assert rank1(blurred, "judge", "protected-raw") < rank1(blurred, "judge", "raw-raw")
    similar = [r.score("images", "protected to original", "SSIM") for r in (noisy, blurred)]
    assert similar[0].value < similar[1].value < 1.0


def test_a_grey_release_is_chance_and_has_no_chaos(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=12)
    result = audit(originals, changed(originals, tmp_path / "p", grey))
    stock = result.evidence("stock_recogniser")
    assert stock is not None
    assert stock.scores[0].low <= stock.details["chance"]["rank-1"] <= stock.scores[0].high
    assert any(each.what == "chaos (AD)" for each in result.unmeasured)


def test_the_market_layout_uses_its_query_and_gallery(tmp_path: Path) -> None:
    originals = market(tmp_path / "o")
    result = audit(originals, changed(originals, tmp_path / "p", same))
    assert (result.pictures, result.people, result.queries, result.gallery) == (24, 8, 8, 16)
    assert result.cameras_used
    assert any("8 pictures of the training part" in note for note in result.notes)


@pytest.mark.parametrize("how", ["key", "seed", "kept"])
def test_releases_of_protect_are_paired(tmp_path: Path, how: str) -> None:
    originals = plain(tmp_path / "o", people=4)
    options = {"key": {}, "seed": {"seed": 5}, "kept": {"names": "kept"}}[how]
    protect(originals, tmp_path / "p", "pixelate", **options)  # type: ignore[arg-type]
    result = audit(originals, tmp_path / "p")
    assert result.pictures == 12
    assert result.paired_by == {"kept": "by their paths"}.get(how, "through the key")
    assert result.release is not None
    assert result.release["method"] == "pixelate"


def test_another_tools_names_are_paired_by_file_name(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    for file in changed(originals, tmp_path / "nested", same, ".bmp").rglob("*.bmp"):
        (tmp_path / "flat").mkdir(exist_ok=True)
        shutil.move(file, tmp_path / "flat" / file.name)
    result = audit(originals, tmp_path / "flat")
    assert (result.pictures, result.people, result.paired_by) == (12, 4, "by their file names")


def test_a_manifest_of_another_key_is_told(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    protect(originals, tmp_path / "p", "pixelate", key=tmp_path / "secret" / "key")
    protect(originals, tmp_path / "q", "pixelate", key=tmp_path / "other" / "key")
    with pytest.raises(DataError, match=r"nothing can be measured.*not the one that this release was made with"):
        audit(originals, tmp_path / "p", key=tmp_path / "other" / "key")
    assert audit(originals, tmp_path / "p", key=tmp_path / "secret" / "key").pictures == 12


def test_one_person_only(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=1, shots=5)
    result = audit(originals, changed(originals, tmp_path / "p", blur))
    assert not result.curves
    assert any("one person only" in each.why for each in result.unmeasured)
    assert {"stock_recogniser", "linkage"} <= result.not_applicable.keys()
    assert "own_original" not in result.not_applicable
    ssim = result.score("images", "protected to original", "SSIM")
    assert ssim is not None
    assert ssim.low is None
    assert "one person only" in ssim.note


def test_one_picture_of_each_person(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=6, shots=1)
    result = audit(originals, changed(originals, tmp_path / "p", same))
    assert any("one picture of each person" in each.why for each in result.unmeasured)
    own = result.evidence("own_original")
    assert own is not None
    assert own.scores[0].value == 1.0


def test_no_identities_still_link_pictures(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=6)
    result = audit(originals, changed(originals, tmp_path / "p", same), labels="none")
    assert result.people is None
    own = result.evidence("own_original")
    assert own is not None
    assert own.scores[0].value == 1.0
    assert any("nobody knows who" in each.why for each in result.unmeasured)


def test_mixed_sizes_are_resized_and_said(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    plain(tmp_path / "more", people=2, size=(40, 20))
    shutil.copytree(tmp_path / "more" / "p1", originals / "tall")
    half = changed(originals, tmp_path / "p", lambda pixels, _: pixels[::2, ::2])
    result = audit(originals, half)
    assert any("15 protected pictures were resized" in note for note in result.notes)
    assert any("several sizes" in note for note in result.notes)


def test_half_of_the_release_is_missing_or_unreadable(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o")
    release = changed(originals, tmp_path / "p", same)
    files = sorted(release.rglob("*.png"))
    for file in files[12:]:
        file.unlink()
    files[0].write_bytes(b"not a picture")
    files[1].write_bytes(b"")
    result = audit(originals, release)
    assert result.pictures == 10
    assert any("12 of 24 originals have no protected picture" in note for note in result.notes)
    assert sum(result.protected.unreadable.values()) == 2
    assert any("2 of the protected pictures could not be read" in note for note in result.notes)


def test_unpaired_pictures_with_names_of_people_are_measured_by_themselves(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=5)
    release = tmp_path / "p"
    for identity in range(5):
        for shot in range(3):
            (release / f"q{identity}").mkdir(parents=True, exist_ok=True)
            Image.fromarray(person(identity, shot)).save(release / f"q{identity}" / f"new{identity}{shot}.png")
    result = audit(originals, release)
    assert rank1(result, "judge", "protected-protected") > 0.9
    assert result.score("judge", "raw-raw", "rank-1") is None
    assert "linkage" in result.not_applicable
    assert "stock_recogniser" in result.invalid  # its gates need the originals


def test_where_nothing_can_be_measured_it_is_an_error(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=2)
    (tmp_path / "p").mkdir()
    with pytest.raises(DataError, match="no pictures"):
        audit(originals, tmp_path / "p")
    with pytest.raises(DataError, match="not there"):
        audit(originals, tmp_path / "nowhere")
    for file in changed(originals, tmp_path / "broken", same).rglob("*.png"):
        file.write_bytes(b"broken")
    with pytest.raises(DataError, match="none of the 6 pictures could be read"):
        audit(originals, tmp_path / "broken")


def test_a_folder_without_pairs_of_people_whom_nobody_knows_is_looked_into_and_nothing_more(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=2)
    (tmp_path / "p").mkdir()
    Image.fromarray(person(0, 0)).save(tmp_path / "p" / "unknown.png")
    result = audit(originals, tmp_path / "p", learn=5)
    assert {(each.by, each.score.metric) for each in result.measurements} == {("images", "AD")}
    assert all(not each.applicable for each in result.attacks)
    assert all(verdict.grade is Grade.NOT_ATTACKED for verdict in result.verdicts)
    said = next(note for note in result.notes if "only their files and pixels are looked into" in note)
    assert re.search(r"With pairs, everything could be measured.*Without pairs.*--labels", said)
    lines = list(terminal_lines(result))
    assert any(line.startswith("For more verdicts: the originals of these pictures") for line in lines)
    assert not any("--learn" in line for line in lines)


def test_audits_may_share_a_cache(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    releases = [changed(originals, tmp_path / name, change) for name, change in (("p", blur), ("q", noise))]
    counts = []
    for release in releases:
        counting = Counting()
        run_audit(originals, release, expert=counting, judge=counting, cache=tmp_path / "shared")
        assert (tmp_path / f"{release.name}.audit" / "report.html").is_file()
        counts.append(counting.count)
    assert counts[1] == counts[0] - 12  # the originals were known


def test_features_are_kept_apart_by_all_that_they_depend_on(tmp_path: Path) -> None:
    """One weights file with and without mirror images: neither may be given the other's features."""
    originals = plain(tmp_path / "o", people=4)
    release = changed(originals, tmp_path / "p", noise)
    experts = [Halves(flip=flip) for flip in (False, True)]
    apart = [
        run_audit(originals, release, expert=each, judge=each, out=tmp_path / f"apart{number}")
        for number, each in enumerate(experts)
    ]
    shared = [
        run_audit(originals, release, expert=each, judge=each, cache=tmp_path / "shared", out=tmp_path / f"s{number}")
        for number, each in enumerate(experts)
    ]
    assert shared == apart
    assert apart[0].measurements != apart[1].measurements
    assert [result.expert.flip for result in apart] == [False, True]
    both = run_audit(originals, release, expert=experts[0], judge=experts[1], out=tmp_path / "both")
    assert not both.independent  # the same weights all the same
    for by, alone in (("expert", apart[0]), ("judge", apart[1])):
        found = [m.score.value for m in both.measurements if m.by == by]
        assert found == [m.score.value for m in alone.measurements if m.by == by]
    report = (tmp_path / "both" / "report.html").read_text()
    assert report.count("each averaged with its mirror image’s") == 1


def test_the_audit_never_lies_among_the_pictures(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=2)
    release = changed(originals, tmp_path / "p", same)
    with pytest.raises(UsageError, match="must lie apart"):
        audit(originals, release, out=release / "audit")


class Halves(HistogramEmbedder):
    """The histogram of the left half of a picture; with flip, averaged with the right half's."""

    def __init__(self, flip: bool) -> None:
        self.flip = flip

    @property
    def info(self) -> ExpertInfo:
        return dataclasses.replace(super().info, name="halves", flip=self.flip)

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        half = images.shape[3] // 2
        left = super().embed(images[..., :half])
        return (left + super().embed(images.flip(3)[..., :half])) / 2 if self.flip else left


class Counting(HistogramEmbedder):
    """Counts the pictures it has embedded, and can be made to fail."""

    def __init__(self, fail_after: int | None = None) -> None:
        self.count, self.fail_after = 0, fail_after

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        self.count += len(images)
        if self.fail_after is not None and self.count > self.fail_after:
            raise KeyboardInterrupt
        return super().embed(images)


def test_a_stopped_audit_goes_on_where_it_was(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=30)
    release = changed(originals, tmp_path / "p", blur)
    unbroken = Counting()
    expected = run_audit(originals, release, expert=unbroken, judge=unbroken, out=tmp_path / "whole")
    stopped = Counting(fail_after=120)
    with pytest.raises(KeyboardInterrupt):
        run_audit(originals, release, expert=stopped, judge=stopped, out=tmp_path / "a")
    resumed = Counting()
    result = run_audit(originals, release, expert=resumed, judge=resumed, out=tmp_path / "a")
    assert 0 < resumed.count < unbroken.count
    assert result == expected
    again = Counting()
    run_audit(originals, release, expert=again, judge=again, out=tmp_path / "a")
    assert again.count == 0  # every cell is there


def test_the_result_survives_its_file_and_names_no_original(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=5)
    for file in list(originals.rglob("*.png")):
        file.rename(file.with_name(f"canary-{file.name}"))
    result = audit(originals, changed(originals, tmp_path / "p", blur), show_originals=True)
    folder = tmp_path / "p.audit"
    read = read_audit(folder / "audit.json")
    assert read == result
    for file in (folder / "audit.json", folder / "report.html"):
        text = file.read_text()
        assert "canary" not in text
        assert str(tmp_path) not in text
    assert b"canary" not in (folder / "cache" / "features.sqlite").read_bytes()


def test_a_damaged_result_is_told(tmp_path: Path) -> None:
    (tmp_path / "audit.json").write_text("{}")
    with pytest.raises(DataError, match="not an audit"):
        read_audit(tmp_path / "audit.json")


def test_judge_and_expert_of_one_model_are_marked(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    release = changed(originals, tmp_path / "p", same)
    result = audit(originals, release)
    assert not result.independent
    assert any("one and the same model" in note for note in result.notes)
    assert all("not independent" in m.score.note for m in result.measurements if m.by == "judge")

    class Other(HistogramEmbedder):
        @property
        def info(self):
            return dataclasses.replace(super().info, name="other", sha256="1" * 64)

    assert run_audit(originals, release, expert=load_expert("histogram"), judge=Other()).independent


def test_every_score_is_finite(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=3, size=(8, 8))
    result = audit(originals, changed(originals, tmp_path / "p", noise))
    assert all(np.isfinite(m.score.value) for m in result.measurements)
    assert any(each.what == "SSIM" for each in result.unmeasured)


def test_only_the_attacks_asked_for_are_made(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o")
    release = changed(originals, tmp_path / "p", blur)
    result = audit(originals, release, attacks=["linkage"])
    assert {evidence.attack for evidence in result.attacks if evidence.applicable} == {"linkage"}
    assert result.config["attacks"] == ["linkage"]
    assert any("--attack" in each.why for each in result.unmeasured)
    everything = audit(originals, release)
    assert result.evidence("linkage") == everything.evidence("linkage")
    with pytest.raises(UsageError, match="no attack 'linkige'"):
        audit(originals, release, attacks=["linkige"])


def test_a_stolen_decoder_is_tried_if_it_is_the_releases(tmp_path: Path) -> None:
    originals, release = plain(tmp_path / "o"), tmp_path / "p"
    model = Path(tiny_model_file())
    protect(originals, release, "privacyreid", model=model, seed=0, names="kept")
    without = audit(originals, release, seed=0).evidence("stolen_decoder")
    assert without is not None
    assert without.why_missing == "no decoder of this release is at hand"
    result = audit(originals, release, seed=0, decoder=decoder_beside(model))
    evidence = result.evidence("stolen_decoder")
    assert evidence is not None
    assert evidence.applicable
    recover(release, tmp_path / "back", model=decoder_beside(model))
    apart = []
    for file in originals.rglob("*.png"):
        again = tmp_path / "back" / file.relative_to(originals)
        both = [np.asarray(Image.open(path), dtype=np.float64) / 255 for path in (file, again)]
        apart.append(-10 * np.log10(np.square(both[0] - both[1]).mean()))
    found = next(score.value for score in evidence.scores if score.metric == "PSNR")
    assert found == pytest.approx(np.mean(apart), abs=1e-3)  # just what the pipeline's own recovery writes
    assert result.config["decoder_sha256"]
    with pytest.raises(CheckpointError, match="the decoder of another model"):
        audit(originals, release, seed=0, decoder=decoder_beside(Path(tiny_model_file(1))))
    with pytest.raises(UsageError, match="no manifest that this version reads; leave it out"):
        audit(originals, changed(originals, tmp_path / "other tool", blur), decoder=decoder_beside(model))


def test_a_manifest_that_does_not_match_the_files_is_told_and_the_files_are_measured(tmp_path: Path) -> None:
    originals, release = plain(tmp_path / "o", people=4), tmp_path / "p"
    protect(originals, release, "blur", names="kept", labels="folder")
    assert not any("manifest" in each.what for each in audit(originals, release, out=tmp_path / "a").unmeasured)
    files = sorted(release.rglob("*.png"))
    files[0].unlink()
    Image.fromarray(person(1, 1)).save(files[1])
    shutil.copyfile(files[2], files[2].with_name("extra.png"))
    result = audit(originals, release, out=tmp_path / "b")
    assert result.pictures == 11
    why = next(each.why for each in result.unmeasured if each.what == "whether the release is what its manifest says")
    assert "1 listed picture is missing, 1 picture is not listed, 1 picture has other content" in why
    assert "measured as they are" in why
    assert "1 of 12 originals has no protected picture and is left out" in result.notes
    assert "1 of 12 protected pictures belongs to no original and is left out" in result.notes
    (release / "SHA256SUMS").write_text("")
    assert any("is not the one that it was made with" in each.why for each in audit(originals, release).unmeasured)


def test_another_tools_manifest_is_no_manifest_and_that_is_told(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=4)
    release = changed(originals, tmp_path / "p", blur)
    (release / "manifest.json").write_text('{"tool": "another"}')
    result = audit(originals, release)
    assert result.release is None
    assert any("manifest.json is not one that this version reads" in note for note in result.notes)


def test_one_folder_for_both_is_told(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=2)
    with pytest.raises(UsageError, match="one folder"):
        audit(originals, originals)


@pytest.mark.slow
def test_a_random_method_of_the_manifest_is_run_again_for_averaging(tmp_path: Path) -> None:
    originals, release = plain(tmp_path / "o", people=4), tmp_path / "p"
    protect(originals, release, "noise", settings={"sigma": 0.1}, labels="folder")
    result = audit(originals, release, attacks=["averaging"], learn=16)
    evidence = result.evidence("averaging")
    assert evidence is not None
    assert evidence.applicable
    psnr = {score.metric: score.value for score in evidence.scores if score.metric.startswith("PSNR,")}
    assert psnr["PSNR, 64 averaged"] > psnr["PSNR, 1 averaged"] + 10  # the root of 64 is 18 dB
    protect(originals, tmp_path / "b", "blur", labels="folder")
    without = audit(originals, tmp_path / "b", attacks=["averaging"], learn=16).evidence("averaging")
    assert without is not None
    assert "cannot be run again" in without.why_missing


def test_swapped_folders_are_told(tmp_path: Path) -> None:
    originals = plain(tmp_path / "originals")
    protect(originals, tmp_path / "release", "blur", seed=1, labels="folder")
    with pytest.raises(UsageError, match="are the two swapped"):
        run_audit(tmp_path / "release", originals, expert="histogram", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
