"""From the options of a benchmark to a spec of audits, which `veilkit audit --spec` runs as well."""

from __future__ import annotations

import os
import shutil
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from veilkit.audit.benchmark.expert import added_onnx
from veilkit.audit.benchmark.options import MODELS, Asked, BenchmarkOptions
from veilkit.audit.inputs.faces import choose_seen
from veilkit.audit.inputs.judges import choose_expert, choose_judge
from veilkit.audit.inputs.spec import AuditSpec, DatasetSpec, ExpertSpec, MethodSpec
from veilkit.audit.options import NO_BUDGET
from veilkit.audit.private_files import private_folder
from veilkit.datasets.folder import load_folder
from veilkit.datasets.labels import MARKET_FOLDERS, is_market_layout
from veilkit.errors import DataError, UsageError
from veilkit.experts import load_expert
from veilkit.media.reading import Limits
from veilkit.methods import METHODS, Learns
from veilkit.methods.base import WorksUnfitted
from veilkit.rng import Randomness
from veilkit.types import Record

NAME = "data"
_LEARNED = MARKET_FOLDERS[0]


@dataclass(frozen=True, slots=True)
class Plan:
    """spec: all audits. asked: the methods, by their names in it. originals: that are protected. notes: for readers.

    own: methods that come with a recogniser of their own, in whose place nobody else's can be used.
    """

    spec: AuditSpec
    asked: dict[str, Asked]
    originals: Path
    notes: tuple[str, ...]
    own: tuple[str, ...]


def planned(options: BenchmarkOptions) -> Plan:
    """Choose pictures, experts and models; raises before anything is computed where one is missing."""
    out = options.destination
    methods, own = zip(*(_method(each, options) for each in options.asked), strict=True)
    private_folder(out)
    originals = _originals(options, out)
    seen, _ = choose_seen(originals, Limits(), options.kind)
    notes = []
    expert = options.expert
    if expert is not None and expert.endswith(".onnx"):
        split = load_folder(originals, options.labels)
        expert, note = added_onnx(
            Path(expert).resolve(), split, normalisation=options.normalisation, size=options.input_size
        )
        notes.append(note)
    elif expert is not None and expert.endswith(".safetensors"):
        expert = str(Path(expert).resolve())
    judge = options.judge
    if judge is not None and judge.endswith((".onnx", ".safetensors")):
        judge = str(Path(judge).resolve())
    if judge is None and seen == "pictures":  # one for all: a method's own expert must not change who judges
        chosen, _ = choose_expert(expert, seen)
        judge = choose_judge(None, chosen, seen)[0].name
    bound = _supervises(expert)
    spec = AuditSpec(
        datasets=(DatasetSpec(name=NAME, originals=originals, labels=options.labels,
                              kind="faces" if seen == "faces" else "people"),),
        methods=tuple(_bound(each, expert if bound else None) for each in methods),
        experts=(ExpertSpec(expert=expert, judge=judge),),
        seeds=(options.seed,),
        budget=None if options.budget == NO_BUDGET else options.budget,
    )  # fmt: skip
    names = {each.slug: each for each in options.asked}
    kept = tuple(name for name, has in zip(names, own, strict=True) if has)
    if kept:
        notes.append(f"{', '.join(kept)}: what is kept is judged by the recogniser that was trained with it")
    if expert is not None and not bound and any(_takes_expert(each) for each in methods):
        notes.append(
            f"gradients do not reach pictures through {expert}: methods made for a recogniser took their default"
        )
    return Plan(spec, names, originals, tuple(notes), kept)


def _method(asked: Asked, options: BenchmarkOptions) -> tuple[MethodSpec, bool]:
    """A method's row of the spec, and whether an expert of its own comes with its model."""
    kind, settings = METHODS[asked.method], dict(asked.settings)
    model = None
    if issubclass(kind, Learns):
        model = options.models.get(asked.method)
        works = issubclass(kind, WorksUnfitted) and kind.unfitted(asked.preset, settings) is not None
        if model is None and not works:
            model = _found_model(asked.method)
    elif asked.method in options.models:
        raise UsageError(f"{asked.method} learns nothing: leave its --model out")
    if model is None or issubclass(kind, WorksUnfitted):
        kind.configured(asked.preset, settings)  # a wrong setting is answered now
    beside = {what: _beside(model, what) for what in ("expert", "decoder", "student")}
    row = MethodSpec(
        name=asked.slug, method=asked.method, preset=asked.preset, settings=settings, model=model,
        decoder=beside["decoder"], student=beside["student"],
        expert=None if beside["expert"] is None else str(beside["expert"]),
    )  # fmt: skip
    return row, beside["expert"] is not None


def _found_model(method: str) -> Path:
    found = sorted(Path(MODELS).resolve().glob(f"*{method}.safetensors"))
    if len(found) == 1:
        return found[0]
    what = f"several files {MODELS}/*{method}.safetensors" if found else f"no file {MODELS}/*{method}.safetensors"
    raise UsageError(
        f"{method} must learn before it protects, and there is {what}: give --model {method}=FILE, or make it "
        f"by `veilkit fit {method} PICTURES --out FILE`"
    )


def _beside(model: Path | None, what: str) -> Path | None:
    """MODEL.WHAT.safetensors, where training left it."""
    file = None if model is None else model.with_suffix(f".{what}.safetensors")
    return file if file is not None and file.is_file() else None


def _takes_expert(method: MethodSpec) -> bool:
    return any(each.name == "expert" for each in fields(METHODS[method.method].default))


def _bound(method: MethodSpec, expert: str | None) -> MethodSpec:
    """Methods that make pictures for a recogniser make them for the authorised one."""
    if expert is None or method.model is not None or not _takes_expert(method) or "expert" in method.settings:
        return method
    return method.model_copy(update={"settings": {**method.settings, "expert": expert}})


def _supervises(expert: str | None) -> bool:
    return expert is not None and load_expert(expert).info.differentiable


def _originals(options: BenchmarkOptions, out: Path) -> Path:
    """The pictures that are protected: the folder itself, or those chosen of it, linked into another."""
    data = Path(options.data).resolve()
    market = is_market_layout(data)
    if options.people is None and not (market and any((data / _LEARNED).iterdir())):
        return data
    by_person: dict[str, list[Record]] = defaultdict(list)
    for record in load_folder(data, options.labels).records:
        if record.identity is not None and not (market and record.path.startswith(f"{_LEARNED}/")):
            by_person[record.identity].append(record)
    if market:  # people who are never searched for, and detections of nobody, only fill the gallery
        asked = {who for who, each in by_person.items() if any(r.path.startswith("query/") for r in each)}
    else:
        asked = {who for who, each in by_person.items() if len(each) > 1}
    people = sorted(asked)
    if options.people is not None:
        if len(people) < options.people:
            raise DataError(
                f"expected at least {options.people} people of two pictures or more in {data}, but there are "
                f"{len(people)}: ask for fewer (--people), or say who is in a picture (--labels)"
            )
        order = Randomness.from_seed(options.seed).child("benchmark").permutation(len(people))
        people = sorted(people[place] for place in order[: options.people])
        name = f"originals-{options.people}-seed{options.seed}"
    else:
        people, name = sorted(by_person), "originals"
    target = out / name
    _link(data, target, (record.path for who in people for record in by_person[who]))
    for folder in MARKET_FOLDERS if market else ():
        (target / folder).mkdir(exist_ok=True)
    return target


def _link(source: Path, target: Path, paths: Iterable[str]) -> None:
    """The same files under another folder; copies where the disk cannot link."""
    private_folder(target)
    for path in paths:
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        if (target / path).exists():
            continue
        try:
            os.link(source / path, target / path)
        except OSError:
            draft = target / f"{path}.part"
            shutil.copyfile(source / path, draft)
            draft.replace(target / path)


def as_values(options: BenchmarkOptions) -> dict[str, Any]:
    """What was asked for, without paths of this machine."""
    chosen = ("labels", "kind", "people", "budget", "seed")
    return {"methods": list(options.methods), **{name: getattr(options, name) for name in chosen}}
