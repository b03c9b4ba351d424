"""Two promises of the methods that optimise pictures under an expert.

A picture's bytes do not depend on who is protected with it, by how many workers, or in which order the files lie; and
an expert that cannot supervise is refused before anything is written.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import torch

from claims import record
from determinism import contents, shuffled_copy
from pictures import write_folder
from veilkit.errors import VeilkitError
from veilkit.experts.preprocessing import Preprocessing
from veilkit.experts.torch_embedder import ModuleEmbedder
from veilkit.methods.pixelfade.config import PixelFadeConfig
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid
from veilkit.pipeline.protect import protect

SEED, COUNT, PEOPLE, SIZE = 0, 20, 5, (64, 32)
COMMAND = "python benchmarks/pixelfade_contract.py"
WAYS: dict[str, tuple[str, str | None, dict[str, object]]] = {
    "pixelfade": ("pixelfade", None, {}),
    "pixelfade as printed": ("pixelfade", "paper", {"steps": 12}),
    "pixelfade as released": ("pixelfade", "released", {"steps": 12}),
    "avih": ("avih", None, {"steps": 12}),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        source = work / "source"
        write_folder(source, COUNT, people=PEOPLE, height=SIZE[0], width=SIZE[1])
        different = {name: differing(source, work / name.replace(" ", "-"), *way) for name, way in WAYS.items()}
        written = {name: left_behind(source, work / f"refused-{name}", name) for name in EXPERTS}
    print({name: len(files) for name, files in different.items()}, written)
    about = {"data": "generated pictures, a network of random weights", "seed": SEED, "command": COMMAND}
    record(
        id="pixelfade-bytes",
        claim="PixelFade and AVIH: pictures whose bytes depend on batch mates, workers or the order of files",
        figure=sum(map(len, different.values())), bar="== 0", unit="pictures",
        scale=f"{COUNT} pictures each by {', '.join(WAYS)}; in-process, 1 and 2 workers, shuffled, every third alone",
        **about,
    )  # fmt: skip
    record(
        id="pixelfade-refused",
        claim="Files written under experts that cannot supervise, before they were refused",
        figure=sum(written.values()), bar="== 0", unit="files",
        scale=f"experts: {', '.join(EXPERTS)}", **about,
    )  # fmt: skip


# The same bytes


def differing(source: Path, work: Path, method: str, preset: str | None, settings: Mapping[str, object]) -> set[str]:
    """Pictures that are not the same in every run, by path."""
    work.mkdir()
    shuffled_copy(source, work / "copy", SEED)
    some = work / "some"
    for file in sorted(source.rglob("*.jpg"))[::3]:
        target = some / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    expert = expert_file(work / "expert.safetensors")
    runs = [(source, 0), (source, 1), (source, 2), (work / "copy", 0), (some, 0)]
    releases = []
    for number, (pictures, workers) in enumerate(runs):
        target = work / f"release{number}"
        protect(
            pictures, target, method, preset=preset, settings={"expert": str(expert), "spread": 1.0, **settings},
            key=work / "private" / "key", names="kept", workers=workers,
        )  # fmt: skip
        releases.append({path: data for path, data in contents(target).items() if path.endswith(".png")})
    first, *others = releases
    if len(first) != COUNT or any(len(other) != COUNT for other in others[:-1]) or not others[-1]:
        raise SystemExit(f"{method} did not release all of its pictures")
    return {path for other in others for path in other if other[path] != first.get(path)}


# Refusals


def expert_file(file: Path, *, broken: bool = False) -> Path:
    """A Re-ID network of random weights, with weights that are not numbers where asked for."""
    torch.manual_seed(SEED)
    network = ReidNetwork(ReidNetworkConfig("osnet-x0.25", SIZE)).train()
    with torch.no_grad():
        network.backbone(torch.randn(16, 3, *SIZE))
        if broken:
            next(iter(network.backbone.parameters())).fill_(float("nan"))
    save_reid(file, network.eval())
    return file


def _under(expert: str) -> PixelFade:
    return PixelFade.configured(settings={"expert": expert, "spread": 1.0})


def _not_differentiable(_: Path) -> PixelFade:
    return _under("histogram")


def _not_a_number(folder: Path) -> PixelFade:
    return _under(str(expert_file(folder / "nan.safetensors", broken=True)))


def _torn(folder: Path) -> PixelFade:
    file = folder / "torn.safetensors"
    file.write_bytes(expert_file(folder / "whole.safetensors").read_bytes()[:5000])
    return _under(str(file))


def _of_other_images(_: Path) -> PixelFade:
    grey = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.Flatten())  # it will be given three channels
    values = (0.5, 0.5, 0.5)
    return PixelFade(
        PixelFadeConfig(spread=1.0), ModuleEmbedder(grey, Preprocessing(SIZE, values, values), name="grey")
    )


EXPERTS = {
    "not differentiable": _not_differentiable, "returns NaN": _not_a_number, "wrong input": _of_other_images,
    "torn file": _torn,
}  # fmt: skip


def left_behind(source: Path, work: Path, name: str) -> int:
    """Pictures in the release after a refusal; an expert that is not refused counts with all of its pictures."""
    work.mkdir()
    release = work / "release"
    try:
        protect(source, release, EXPERTS[name](work), seed=SEED)
    except VeilkitError as error:
        print(f"{name}: {error}")
    else:
        print(f"{name}: NOT refused")
    return sum(file.is_file() for file in release.rglob("*")) if release.exists() else 0


if __name__ == "__main__":
    main()
