"""Audits of folders in which something is missing: each must say what can be measured and what cannot, and its exit
code must be 2 only where nothing can, and 3 where the originals are not those of the release.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from claims import record
from process import Finished, run
from veilkit.key import read_or_create_key
from veilkit.pipeline.names import Names
from veilkit.pipeline.protect import protect
from veilkit.synthetic.people import generate_people

COMMAND = "python benchmarks/audit_inputs.py"
PEOPLE = {"identities": 12, "images": 4, "cameras": 2, "seed": 11}  # the second half, 6 people, is the test part
SIMILARITY = ("images", "protected to original", "SSIM")
CHAOS = ("images", "protected", "AD")
KEPT = ("expert", "protected-protected", "rank-1")  # what the authorised user keeps
CHANGE = ("expert", "protected minus raw", "rank-1")
FOUR = tuple(
    (by, f"{query}-{gallery}", "rank-1")
    for by in ("expert", "judge")
    for query in ("raw", "protected")
    for gallery in ("raw", "protected")
)
PEOPLE_ATTACKS = ("attack stock_recogniser", "attack linkage")
Folders = tuple[Path, Path]


@dataclass(frozen=True, slots=True)
class Case:
    """Two folders, made below a work folder from generated people, and what their audit must do.

    told: texts that its output must hold. measured: (by, setting, metric) that audit.json must hold. unmeasured: what
    it must list as such, beside other attacks no more and no less; with an exit code of 2 it must write neither
    audit.json nor report.html.
    options: of the command, where {work} stands for the work folder.
    """

    name: str
    make: Callable[[Path, Path], Folders]
    code: int
    told: tuple[str, ...] = ()
    measured: tuple[tuple[str, str, str], ...] = ()
    unmeasured: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def people(root: Path) -> Path:
    """Six people who do not exist, four small pictures each by two cameras: one folder, names as in Market-1501."""
    generate_people(root / "generated", workers=1, **PEOPLE)
    flat = root / "people"
    flat.mkdir()
    for part in ("query", "bounding_box_test"):
        for file in (root / "generated" / part).iterdir():
            with Image.open(file) as image:
                image.resize((32, 64)).save(flat / f"{file.stem}.png")
    return flat


def originals(
    source: Path, work: Path, *, by_person: bool = True, wanted: Callable[[Path], bool] | None = None
) -> Path:
    """Some of the people, in one folder each or all in one."""
    folder = work / "originals"
    for file in sorted(source.iterdir()):
        if wanted is None or wanted(file):
            target = folder / file.name[:4] if by_person else folder
            target.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target / file.name)
    return folder


def blurred(folder: Path, work: Path, change: Callable[[Image.Image], Image.Image] | None = None) -> Path:
    """What another tool would leave: the same names, other pictures."""
    release = work / "release"
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        target = (release / file.relative_to(folder)).with_suffix(".png")
        target.parent.mkdir(parents=True, exist_ok=True)
        with Image.open(file) as image:
            (change or (lambda picture: picture.filter(ImageFilter.GaussianBlur(2))))(image.convert("RGB")).save(
                target
            )
    return release


def _whole(source: Path, work: Path) -> Folders:
    folder = originals(source, work, by_person=False)
    return folder, blurred(folder, work)


def _one_person(source: Path, work: Path) -> Folders:
    first = min(file.name[:4] for file in source.iterdir())
    folder = originals(source, work, wanted=lambda file: file.name.startswith(first))
    return folder, blurred(folder, work)


def _one_picture_each(source: Path, work: Path) -> Folders:
    seen: set[str] = set()
    folder = originals(source, work, wanted=lambda file: not (file.name[:4] in seen or seen.add(file.name[:4])))
    return folder, blurred(folder, work)


def _one_picture(source: Path, work: Path) -> Folders:
    first = min(source.iterdir()).name
    folder = originals(source, work, wanted=lambda file: file.name == first)
    return folder, blurred(folder, work)


def _by_person(source: Path, work: Path) -> Folders:
    folder = originals(source, work)
    return folder, blurred(folder, work)


def _mixed_sizes(source: Path, work: Path) -> Folders:
    folder = originals(source, work)
    for number, file in enumerate(sorted(folder.rglob("*.*"))[::2]):
        with Image.open(file) as image:
            made = image.convert("RGB").resize((20 + 3 * number, 40 + 5 * number))
        made.save(file)
    return folder, blurred(folder, work, lambda image: image.resize((image.width // 2, image.height // 2)))


def _tiny(source: Path, work: Path) -> Folders:
    folder = originals(source, work)
    for file in sorted(folder.rglob("*.*")):
        with Image.open(file) as image:
            made = image.convert("RGB").resize((4, 8))
        made.save(file)
    return folder, blurred(folder, work, lambda image: image.filter(ImageFilter.BoxBlur(1)))


def _one_colour(source: Path, work: Path) -> Folders:
    folder = originals(source, work)
    return folder, blurred(folder, work, lambda image: Image.new("RGB", image.size, (128, 128, 128)))


def _unchanged(source: Path, work: Path) -> Folders:
    folder = originals(source, work)
    return folder, blurred(folder, work, lambda image: image)


def _half_missing(source: Path, work: Path) -> Folders:
    folder, release = _by_person(source, work)
    for number, file in enumerate(sorted(release.rglob("*.png"))):
        if number % 4 == 3:
            file.unlink()
        elif number % 12 == 0:
            file.write_bytes(b"not a picture")
    return folder, release


def _unreadable(source: Path, work: Path) -> Folders:
    folder, release = _by_person(source, work)
    for file in release.rglob("*.png"):
        file.write_bytes(file.read_bytes()[:50])
    return folder, release


def _another_key(source: Path, work: Path, names: Names = "pseudonyms") -> Folders:
    """A release under one key, and the key of somebody else."""
    folder = originals(source, work)
    protect(folder, work / "release", "blur", key=work / "own" / "key", names=names)
    read_or_create_key(work / "other" / "key")
    return folder, work / "release"


def _another_key_kept_names(source: Path, work: Path) -> Folders:
    return _another_key(source, work, "kept")


def _manifest_of_others(source: Path, work: Path) -> Folders:
    """A release in which one picture was changed, one taken away and one added since."""
    folder = originals(source, work)
    protect(folder, work / "release", "blur", key=work / "own" / "key", names="kept", labels="folder")
    first, second, third = sorted((work / "release").rglob("*.png"))[:3]
    with Image.open(first) as image:
        other = image.convert("RGB").filter(ImageFilter.BoxBlur(2))
    other.save(first)
    second.unlink()
    shutil.copyfile(third, third.with_name("added.png"))
    return folder, work / "release"


def _foreign_manifest(source: Path, work: Path) -> Folders:
    folder, release = _by_person(source, work)
    (release / "manifest.json").write_text('{"name": "holiday pictures", "version": 3}')
    return folder, release


def _nothing_pairs(source: Path, work: Path) -> Folders:
    """A release of synthetic pictures, whose folders say who each is meant for."""
    folder, release = _by_person(source, work)
    for number, person in enumerate(sorted(release.iterdir())):
        for place, file in enumerate(sorted(person.iterdir())):
            file.rename(person / f"made-{number}-{place}.png")
        person.rename(release / f"class{number}")
    return folder, release


def _nothing_pairs_nobody_known(source: Path, work: Path) -> Folders:
    folder, release = _nothing_pairs(source, work)
    for file in list(release.rglob("*.png")):
        file.rename(release / file.name)
    return folder, release


def _empty_release(source: Path, work: Path) -> Folders:
    (work / "release").mkdir()
    return originals(source, work), work / "release"


def _empty_originals(source: Path, work: Path) -> Folders:
    folder, release = _by_person(source, work)
    folder.rename(work / "elsewhere")
    folder.mkdir()
    return folder, release


def _no_pictures(source: Path, work: Path) -> Folders:
    (work / "release").mkdir()
    (work / "release" / "read.me").write_text("nothing here")
    return originals(source, work), work / "release"


def _absent(source: Path, work: Path) -> Folders:
    return originals(source, work), work / "nowhere"


def _a_file(source: Path, work: Path) -> Folders:
    (work / "release.png").write_bytes(min(source.iterdir()).read_bytes())
    return originals(source, work), work / "release.png"


BY_NAME = ("--labels", r"pattern:(?P<identity>\d{4})_c(?P<camera>\d)")
OTHER_KEY = ("--key", "{work}/other/key")
EVERYTHING = (*FOUR, CHANGE, SIMILARITY, CHAOS)
CASES = (
    Case("nothing is missing", _whole, 0, ("finds the right person",), EVERYTHING, (), BY_NAME),
    Case("no cameras", _by_person, 0, ("cameras are not known", "near duplicates"), EVERYTHING),
    Case("one person only", _one_person, 0, ("one person only",), (SIMILARITY, CHAOS),
         ("recognition of people in four settings", *PEOPLE_ATTACKS)),
    Case("one picture of each person", _one_picture_each, 0, ("one picture of each person only",),
         (SIMILARITY, CHAOS), ("recognition of people in four settings", *PEOPLE_ATTACKS)),
    Case("one picture in all", _one_picture, 0, ("one person only",), (SIMILARITY, CHAOS),
         ("recognition of people in four settings", *PEOPLE_ATTACKS, "attack own_original")),
    Case("nobody knows who is in the pictures", _by_person, 0, ("nobody knows who is in the pictures",),
         (SIMILARITY, CHAOS), ("recognition of people in four settings", *PEOPLE_ATTACKS), ("--labels", "none")),
    Case("pictures of mixed sizes", _mixed_sizes, 0, ("have several sizes", "were resized"), EVERYTHING),
    Case("pictures too small for SSIM", _tiny, 0, ("too small for SSIM",), (*FOUR, CHAOS), ("SSIM",)),
    Case("a release of one colour", _one_colour, 0, ("one single value",), (*FOUR, SIMILARITY), ("chaos (AD)",)),
    Case("a release that equals its originals", _unchanged, 0, ("equal their originals",), (*FOUR, SIMILARITY, CHAOS),
         ("PSNR",)),
    Case("pictures missing or damaged", _half_missing, 0,
         ("6 of 24 originals have no protected picture", "2 of the protected pictures could not be read"),
         EVERYTHING),
    Case("nothing pairs, but the release says who is who", _nothing_pairs, 3,
         ("only the protected ones are measured", "INVALID: the originals are not at hand"), (KEPT, CHAOS),
         ("recognition with raw queries or a raw gallery", "similarity to the originals", "attack linkage",
          "attack own_original", "attack mean_image")),
    Case("nothing pairs and nobody is known", _nothing_pairs_nobody_known, 3,
         ("only their files and pixels are looked into", "keep the paths or file names", "--labels", "Not attacked"),
         (CHAOS,),
         ("recognition of people in four settings", "recognition with raw queries or a raw gallery",
          "similarity to the originals", *PEOPLE_ATTACKS, "attack own_original", "attack mean_image")),
    Case("a manifest that does not match its files", _manifest_of_others, 0,
         ("the manifest does not match the files", "1 listed picture is missing", "1 picture is not listed",
          "1 picture has other content", "is only claimed"), EVERYTHING,
         ("whether the release is what its manifest says",)),
    Case("a manifest of another tool", _foreign_manifest, 0,
         ("manifest.json is not one that this version reads", "treated as any other"), EVERYTHING),
    Case("the key of another release, names kept", _another_key_kept_names, 0,
         ("not the one that this release was made with", "names were kept"), EVERYTHING, (), OTHER_KEY),
    Case("the key of another release", _another_key, 2,
         ("nothing can be measured", "not the one that this release was made with", "--key"),
         options=OTHER_KEY),
    Case("no protected picture can be read", _unreadable, 2, ("nothing can be measured", "could be read")),
    Case("an empty release", _empty_release, 2, ("no pictures",)),
    Case("an empty folder of originals", _empty_originals, 2, ("no pictures",)),
    Case("a release without pictures", _no_pictures, 2, ("no pictures",)),
    Case("a release that is not there", _absent, 2, ("not there",)),
    Case("a file in place of a folder", _a_file, 2, ("is a file",)),
)  # fmt: skip


def shortcomings(case: Case, done: Finished, audit: Path) -> list[str]:
    """What an audit failed to do; nothing where all is as it should be. audit: the folder it writes to."""
    short = [f"exit code {done.code} instead of {case.code}"] if done.code != case.code else []
    short += [f"does not say {text!r}" for text in case.told if text not in done.output]
    if "Traceback" in done.output:
        short.append("shows a traceback")
    result, report = audit / "audit.json", audit / "report.html"
    if case.code == 2:
        if not any(line.startswith("Error: ") for line in done.output.splitlines()):
            short.append("does not tell its error in one line")
        return short + [f"wrote {file.name} all the same" for file in (result, report) if file.exists()]
    if not result.exists() or not report.exists():
        return [*short, "wrote no audit.json or no report.html"]
    found = json.loads(result.read_text())
    values = {(m["by"], m["setting"], m["score"]["metric"]): m["score"]["value"] for m in found["measurements"]}
    short += [f"did not measure {' '.join(each)}" for each in case.measured if each not in values]
    short += [f"{' '.join(each)} is {value}" for each, value in values.items() if not np.isfinite(value)]
    listed = [each["what"] for each in found["unmeasured"]]
    short += [f"does not list {each} as not measured" for each in case.unmeasured if each not in listed]
    extra = [each for each in listed if each not in case.unmeasured and not each.startswith("attack")]
    short += [f"lists {each} as not measured" for each in extra]
    text = report.read_text()
    for each in found["unmeasured"]:
        if not each["why"]:
            short.append(f"does not say why {each['what']} was not measured")
        if each["what"] not in text or f"Not measured: {each['what']}" not in done.output:
            short.append(f"{each['what']} is missing from the report or the output")
    return short


def _audit(*arguments: str | Path) -> Finished:
    return run(*arguments, OMP_NUM_THREADS="1")  # the pictures are few and small


def check(
    case: Case, source: Path, work: Path, audit: Callable[..., Finished] = _audit
) -> tuple[Finished, list[str]]:
    """Make a case's folders below `work` and audit them; what came, and how it falls short."""
    work.mkdir()
    folders = case.make(source, work)
    options = [option.replace("{work}", str(work)) for option in case.options]
    done = audit("audit", *folders, "--out", work / "audit", "--verbose", "--budget", "none", *options)
    return done, shortcomings(case, done, work / "audit")


def main() -> None:
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        source = people(Path(folder))
        for number, case in enumerate(CASES):
            done, short = check(case, source, Path(folder, f"case{number}"))
            failed += bool(short)
            print(f"\n{case.name}: exit code {done.code}{', FALLS SHORT' if short else ''}")
            for line in done.output.replace(folder, "...").splitlines():
                print(f"    {line}")
            for each in short:
                print(f"  ! {each}")
    print()
    record(
        id="audit-inputs",
        claim="`veilkit audit` on folders in which something is missing (people, cameras, pairs, the key, pictures): "
        "cases with a wrong exit code or an untold gap",
        figure=failed,
        bar="<= 0",
        unit="cases",
        data="generated people",
        scale=f"{len(CASES)} cases",
        seed=PEOPLE["seed"],
        command=COMMAND,
        note=f"{sum(case.code == 2 for case in CASES)} of the cases must end with exit code 2, "
        f"{sum(case.code == 3 for case in CASES)} with 3, the others with 0",
    )


if __name__ == "__main__":
    main()
