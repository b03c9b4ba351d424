"""A study from folders to study.html and, apart from it, its private key."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veilkit.datasets.folder import check_folder
from veilkit.errors import ConfigError, DestinationError, UsageError
from veilkit.media.writing import write_atomically
from veilkit.perception.key import KeyCondition, StudyKey, blind, checks_needed
from veilkit.perception.material import CONTROL, Material, Shelf, load_material
from veilkit.perception.plan import Design, Planner
from veilkit.rng import Randomness
from veilkit.secret_file import write_new_secret
from veilkit.version import __version__


def write_page(study: str, questions: list[dict[str, Any]], choices: int) -> str:
    """The page's HTML. The policy names style and script by their hashes, so that nothing else can be slipped in."""
    environment = Environment(
        loader=PackageLoader("veilkit.perception", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = files("veilkit.perception") / "templates"
    style, script = (f"\n{(folder / name).read_text('utf-8')}" for name in ("study.css", "study.js"))
    data = json.dumps({"study": study, "questions": questions}, separators=(",", ":")).replace("<", "\\u003c")
    kinds = {question["kind"] for question in questions}
    return environment.get_template("study.html").render(
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(data),  # noqa: S704 - codes and base64, "<" escaped
        count=len(questions),
        minutes=max(1, round(len(questions) * 6 / 60)),
        pair="pair" in kinds,
        choice="choice" in kinds,
        choices=choices,
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


PAGE, KEY, CODES = "study.html", "key.json", "codes.txt"
LARGE = 25_000_000  # bytes of a page that mail and old computers may refuse
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # without those that are misread


@dataclass(frozen=True, slots=True)
class Made:
    """A finished study: its files, how large the page is, and notes for whoever made it."""

    page: Path
    key: Path
    questions: int
    checks: int
    size: int
    codes: Path | None
    notes: tuple[str, ...]


def make_study(
    originals: str | Path,
    protected: Sequence[str | Path],
    destination: str | Path,
    *,
    design: Design | None = None,
    keys: Sequence[str | Path] = (),
    labels: str = "auto",
    control: bool = True,
    participants: int | None = None,
    seed: int | None = None,
) -> Made:
    """Write DST/study.html, and DST.private/key.json, which no participant may see.

    protected: one folder, or several to compare. keys: of their releases, none, one for all or one for each. control:
    ask about unprotected pictures too. participants: draw so many codes and let nobody else take part. seed: in place
    of a secret; whoever knows it and has the pictures can tell the answers.
    """
    design = _checked(design or Design())
    folders = [Path(each).resolve() for each in protected]
    places = (Path(originals).resolve(), *folders)
    for folder in places:
        check_folder(folder)
    target = _target(places, Path(destination).resolve())
    private = target.with_name(target.name + ".private")
    material = load_material(places[0], folders, keys=_keys(keys, len(folders)), labels=labels, control=control)
    material = _possible(material)
    rng = Randomness(secrets.token_bytes(32)) if seed is None else Randomness.from_seed(seed).child("study")
    shelf = Shelf()
    questions = Planner(material, design, rng.child("plan"), shelf.look).questions()
    size = shelf.size(picture for question in questions for picture in question.options)
    blinded = blind(questions, rng.child("codes"), lambda picture: shelf.address(picture, size))
    study = rng.child("name").bytes(8).hex()
    page = write_page(study, blinded.page, design.choices).encode()
    codes = None if participants is None else _codes(rng.child("participants"), participants)
    key = StudyKey(
        veilkit=__version__,
        study=study,
        page_sha256=hashlib.sha256(page).hexdigest(),
        seed=seed,
        choices=design.choices,
        conditions=tuple(KeyCondition(name=c.name, method=c.method, control=c.control) for c in material.conditions),
        checks_needed=checks_needed(design.checks),
        participants=codes,
        questions=blinded.key,
    )
    _write(target, private, page, key)
    own = Counter(question.condition for question in questions if question.own)
    notes = [*material.notes]
    if shelf.refused:
        notes.append(f"{shelf.refused} pictures that were drawn could not be read; others took their place")
    if own:
        counts = ", ".join(f"{count} of {name}" for name, count in own.items())
        notes.append(f"for want of other originals, the right answer is a picture's very own original in {counts}")
    return Made(
        page=target / PAGE,
        key=private / KEY,
        questions=len(questions) - design.checks,
        checks=design.checks,
        size=len(page),
        codes=None if codes is None else private / CODES,
        notes=tuple(notes),
    )


def _checked(design: Design) -> Design:
    for name, least in (("questions", 2), ("choices", 2), ("checks", 0)):
        if (value := getattr(design, name)) < least:
            raise ConfigError(f"{name} must be at least {least}, but got {value}")
    if design.choices > 9:
        raise ConfigError(f"choices must be at most 9, one for each digit of the keyboard, but got {design.choices}")
    return design


def _target(sources: Sequence[Path], target: Path) -> Path:
    for folder in sources:
        if target == folder or folder in target.parents:
            raise UsageError(f"the study must lie apart from the pictures, but {target} is in {folder}")
    for file in (target / PAGE, target.with_name(target.name + ".private") / KEY):
        if file.exists():
            raise DestinationError(
                f"{file} is already there and is never overwritten, as answers to it could not be scored any more: "
                "choose another folder"
            )
    return target


def _keys(keys: Sequence[str | Path], folders: int) -> list[Path | None]:
    given = [Path(key) for key in keys]
    if len(given) not in (0, 1, folders):
        raise UsageError(f"give one key, or one for each of the {folders} protected folders, but got {len(given)}")
    return [None] * folders if not given else [*given] * (folders if len(given) == 1 else 1)


def _possible(material: Material) -> Material:
    """The material without its control, where nobody has two originals."""
    pictures = Counter(picture.person for picture in material.originals)
    if not any(condition.control for condition in material.conditions) or max(pictures.values()) > 1:
        return material
    return replace(
        material,
        conditions=tuple(condition for condition in material.conditions if not condition.control),
        notes=(*material.notes, f"no control ({CONTROL}): nobody is known to have two originals"),
    )


def _codes(rng: Randomness, count: int) -> tuple[str, ...]:
    if count < 1:
        raise ConfigError(f"participants must be at least 1, but got {count}")
    codes: dict[str, None] = {}
    place = 0
    while len(codes) < count:
        codes["".join(_LETTERS[rng.child(place, n).integer(0, len(_LETTERS))] for n in range(8))] = None
        place += 1
    return tuple(codes)


def _write(target: Path, private: Path, page: bytes, key: StudyKey) -> None:
    """The key first: a page without its key is worth nothing."""
    if target.exists() and not target.is_dir():
        raise DestinationError(f"the study cannot be written to {target}, which is a file: choose another name")
    try:
        write_new_secret(private / KEY, json.dumps(key.model_dump(), indent=1) + "\n")
        if key.participants is not None:
            write_new_secret(private / CODES, "\n".join(key.participants) + "\n")
        target.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise DestinationError(f"{private} holds files of another study: choose another folder") from None
    except OSError as error:
        raise DestinationError(f"the study cannot be written to {target}: {error.strerror}") from None
    write_atomically(target / PAGE, page, target)
