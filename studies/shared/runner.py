"""The one runner of all studies: options, settings, data, cells, results, tables and claims."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.errors import UnknownNameError, UsageError, VeilkitError
from veilkit.lookup import unknown_name

if TYPE_CHECKING:
    from studies.shared.study import Study

# Name: its package below `studies`, and what it measures.
STUDIES = {
    "comparison": ("comparison", "every method on the same people, under the same attackers"),
    "controls": ("controls", "blur, pixelation, noise, masks, mix-up and PRO on the whole test part"),
    "disguise": ("disguise", "who is recognised in swapped faces, inversion, utility, landmark networks, guarantees"),
    "fro": ("fro", "pool and students of FRO, PRO, mix-up and noise, attacks on the release, clusters, data scale"),
    "fro-faces": ("fro_faces", "verification on LFW by FRO's pool and students"),
    "pepr": ("peprnet", "encoders with and without De-ID and adversaries, noise on their features, attacks on them"),
    "pixelfade": ("pixelfade", "PixelFade, AVIH and controls: four settings, recovery, outlines, ablations"),
    "privacyreid": ("privacyreid", "base, without and with upgradation trained and compared, recovery, attacks"),
}
DATA = "VEILKIT_DATA"
_ABOUT = """A study computes a paper's tables in small. Each figure is a cell, a file of the working folder, and a
study that was stopped goes on when the same command is given again. A run under the published settings writes the
study's results.json, the tables of its README and its rows of claims; any other run writes its report only. The
working folder shows people: keep it to yourself."""


def load_study(name: str) -> Study[Any]:
    """A study by its name; raises UnknownNameError where there is none of that name."""
    if name not in STUDIES:
        raise UnknownNameError(unknown_name("study", name, STUDIES))
    study: Study[Any] = import_module(f"studies.{STUDIES[name][0]}.study").STUDY
    return study


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit code."""
    words = sys.argv[1:] if words is None else list(words)
    try:
        name = next((word for word in words[:1] if not word.startswith("-")), None)
        study = None if name is None else load_study(name)
        arguments = _parser(study).parse_args(words)
        if study is None:
            if not arguments.list:
                raise UsageError("name a study, or give --list")
            print("\n".join(f"{name:<14}{about}" for name, (_, about) in STUDIES.items()))
            return 0
        if arguments.list:
            print("\n".join(study.cells(_config(study, arguments), _inputs(study, arguments))))
            return 0
        _run(study, arguments)
    except VeilkitError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    return 0


def _parser(study: Study[Any] | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m studies", description=_ABOUT, allow_abbrev=False)
    if study is None:
        names = ", ".join(STUDIES)
        parser.add_argument("name", nargs="?", metavar="NAME", help=f"the study: {names}")
    else:
        parser.add_argument("name", metavar=study.name, help=study.title)
    parser.add_argument(
        "--list", action="store_true", help="list the studies; after a study's name the names of its cells"
    )
    if study is None:
        return parser
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="one option; may be repeated")
    parser.add_argument(
        "--data", type=Path, metavar="DIR",
        help=f"folder of cuhk03-np and lfw, or one dataset in such a layout (default: ${DATA})",
    )  # fmt: skip
    parser.add_argument("--work", "--out", type=Path, metavar="DIR", help=f"default: runs/{study.name}")
    parser.add_argument("--only", nargs="+", default=[], metavar="CELL", help="compute these and publish nothing")
    parser.add_argument(
        "--so-far", action="store_true", help="compute nothing: publish what is there, or render what was published"
    )
    parser.add_argument("--no-claims", action="store_true", help="leave benchmarks/claims.json as it is")
    parser.add_argument("--workers", type=int, default=cores(), metavar="N", help="processes (default: one per core)")
    parser.add_argument("--threads", type=int, default=study.threads or cores(), metavar="N", help="of torch")
    for each in study.inputs:
        shown = f" (default: {each.default})" if each.default else ""
        parser.add_argument(
            f"--{each.name}", action="append" if each.many else "store", help=f"{each.help}{shown}".replace("%", "%%")
        )
    return parser


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _run(study: Study[Any], arguments: argparse.Namespace) -> None:
    from studies.shared.publishing import publish, write_report

    config, inputs = _config(study, arguments), _inputs(study, arguments)
    published = config == study.published and inputs == _inputs(study, None)
    folder: Path = arguments.work or Path("runs") / study.name
    if arguments.so_far:
        if not published:
            raise UsageError("--so-far publishes the study as it is: give no --set, and none of its inputs")
        publish(study, folder, record=not arguments.no_claims, computed=False)
        return
    if arguments.only and (unknown := set(arguments.only) - {*study.cells(config, inputs), *study.extra}):
        raise UsageError(f"no such cell: {', '.join(sorted(unknown))}; --list names them")
    _compute(study, arguments, config, inputs, folder)
    if arguments.only:
        return
    print(f"The tables are in {write_report(study, folder, config)}")
    if published:
        publish(study, folder, record=not arguments.no_claims, computed=True)


def _compute(
    study: Study[Any], arguments: argparse.Namespace, config: Any, inputs: dict[str, Any], folder: Path
) -> None:
    import torch

    from studies.shared.study import Run
    from veilkit.audit.inputs.cache import Cache
    from veilkit.progress import Progress

    given = arguments.data or os.environ.get(DATA)
    data = None if given is None else Path(given)
    if data is not None and not data.is_dir():
        raise UsageError(f"there is no folder {data}: give --data, or set {DATA}")
    for each in study.inputs:
        if each.file:
            _check_files(each.name, inputs[each.name])
    torch.set_num_threads(arguments.threads)
    names = study.cells(config, inputs)
    with Progress(len(names), "cells") as progress, Cache(folder / "features.sqlite") as cache:
        run = Run(config, folder, data, inputs, cache, progress, arguments.workers, arguments.threads)
        study.compute(run, arguments.only)


def _config(study: Study[Any], arguments: argparse.Namespace) -> Any:
    from veilkit.configs import parse_settings, with_settings

    return with_settings(study.published, parse_settings(arguments.set))


def _inputs(study: Study[Any], arguments: argparse.Namespace | None) -> dict[str, Any]:
    """What was given by name, or by default; `none` is None, and inputs that may be repeated are tuples."""
    found: dict[str, Any] = {}
    for each in study.inputs:
        given = None if arguments is None else getattr(arguments, each.name.replace("-", "_"))
        words = [each.default] if given is None else given if each.many else [given]
        values = tuple(word for word in words if word not in (None, "none"))
        found[each.name] = values if each.many else next(iter(values), None)
    return found


def _check_files(name: str, value: Any) -> None:
    for file in value if isinstance(value, tuple) else (value,):
        if file is not None and not Path(file).is_file():
            raise UsageError(f"--{name}: there is no file {file}; models/README.md says where models come from")
