"""Methods on pictures in memory: arrays, tensors, Pillow images. What comes out has the form of what went in."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from veilkit.configs import as_dict, differing
from veilkit.display import counted, html_table
from veilkit.errors import DataError, UsageError
from veilkit.key import Key, read_or_create_key
from veilkit.media.arrays import content_name, read_pictures
from veilkit.media.shape import resized
from veilkit.media.writing import to_pixels
from veilkit.methods import Item, Method, Mixes, Synthesiser, bind
from veilkit.methods.table import configured
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, PictureReport, Release

if TYPE_CHECKING:
    from veilkit.experts import Embedder


def load_method(
    name: str | Method[Any],
    *,
    preset: str | None = None,
    model: str | Path | None = None,
    expert: str | Path | Embedder | None = None,
    **settings: object,
) -> LoadedMethod:
    """A method for pictures in memory: `veilkit.load_method("pixelate", cell=8)(images)`.

    name: one of `veilkit.methods()`, or a method of your own. preset, settings: as `veilkit methods show NAME` lists
    them; a setting that has parts takes a mapping. model: the file that `veilkit fit` wrote, for methods that learn.
    expert: the recogniser that guides the method, for methods that have one: a name of `veilkit.experts()`, a
    .safetensors file, or an embedder of your own through which gradients reach the picture.
    """
    if not isinstance(name, str):
        if preset is not None or model is not None or expert is not None or settings:
            raise UsageError("preset, model, expert and settings go with a method's name; configure your own before")
        return LoadedMethod(name)
    if isinstance(expert, str | Path):
        settings, expert = {**settings, "expert": str(expert)}, None
    chosen = configured(name, preset, settings, model)
    if expert is not None:
        from veilkit.methods.expert_guided.method import ExpertBound  # only who brings an expert pays for it

        if not isinstance(chosen, ExpertBound):
            raise UsageError(f"{name} is not guided by an expert: leave the expert out")
        chosen = chosen.with_expert(expert)
    return LoadedMethod(chosen)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Protected:
    """Protected pictures, in the form in which the originals came.

    reports: of each picture what its owner may know of how it was made, such as faces that were found; often nothing.
    people: of synthetic pictures, whom each stands for.
    """

    images: Any
    reports: tuple[PictureReport, ...]
    people: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        return f"Protected({counted(len(self.reports), 'picture', 'pictures')})"


class LoadedMethod:
    """A method that takes pictures in memory; `veilkit.load_method` makes it.

    Each picture's random values derive from the key (or seed), the method's settings, and a name of the picture,
    which is a hash of its 8-bit pixels unless you name it (`items`): neither order nor batches change a result, and
    no two pictures that differ share noise. A method that mixes pictures of several people mixes those of one call.
    """

    def __init__(self, method: Method[Any]) -> None:
        self.method = method

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.name

    @property
    def config(self) -> Any:
        """Its settings."""
        return self.method.config

    def __call__(
        self,
        images: Any,
        *,
        key: str | Path | Key | None = None,
        seed: int | None = None,
        items: Sequence[str] | None = None,
        identities: Sequence[str | None] | None = None,
    ) -> Any:
        """The protected pictures alone; see `protect`."""
        return self.protect(images, key=key, seed=seed, items=items, identities=identities).images

    def protect(
        self,
        images: Any,
        *,
        key: str | Path | Key | None = None,
        seed: int | None = None,
        items: Sequence[str] | None = None,
        identities: Sequence[str | None] | None = None,
    ) -> Protected:
        """Protect pictures, and say what became of each.

        images: a tensor (3, H, W) or (N, 3, H, W) of floats in [0, 1], an array (H, W, 3) or (N, H, W, 3) of uint8, a
        Pillow image, or a list of these, of any sizes. Tensors come back unrounded and without a gradient.
        key: a secret key file, made if absent, or a `Key`. seed: a public seed in its place, for research. A method
        that draws nothing needs neither.
        items: a name for each picture from which its random values derive; no two pictures may ever share one under
        one key. identities: who is in each picture, for methods that mix people or treat a person's pictures alike.
        """
        if isinstance(self.method, Synthesiser):
            raise UsageError(
                f"{self.name} makes pictures that belong to no original: call synthesise with the number of each "
                "person's originals"
            )
        rng = self._randomness(key, seed)
        given = read_pictures(images)
        names = tuple(items) if items is not None else tuple(map(content_name, given.tensors))
        who = tuple(identities) if identities is not None else (None,) * len(names)
        for what, values in (("item name", names), ("identity", who)):
            if len(values) != len(given.tensors):
                raise DataError(f"expected one {what} per picture, but got {len(values)} for {len(given.tensors)}")
        self.method.check()
        made: dict[int, Tensor] = {}
        reports: dict[int, PictureReport] = {}
        for places, release in self._releases(given.tensors, names, who, rng):
            if release.images is None or release.source_index is None:
                raise DataError(f"{self.name} gives no picture for each picture")
            for position, source in enumerate(release.source_index):
                made[places[source]] = release.images[position]
                reports[places[source]] = PictureReport() if release.reports is None else release.reports[position]
        order = range(len(names))
        return Protected(given.back([made[place] for place in order]), tuple(reports[place] for place in order))

    def synthesise(
        self, counts: Mapping[str, int], *, key: str | Path | Key | None = None, seed: int | None = None
    ) -> Protected:
        """Pictures that belong to no original, of a method that makes such: a list of arrays (H, W, 3) of uint8.

        counts: the number of originals of each person. key, seed: as for `protect`.
        """
        if not isinstance(self.method, Synthesiser):
            raise UsageError(f"{self.name} protects pictures: call it with them")
        rng = self._randomness(key, seed)
        self.method.check()
        images: list[Any] = []
        people: list[str] = []
        for number, group in enumerate(self.method.plan(counts, rng=rng)):
            names = [f"group {number}/{position}/{person}" for position, person in enumerate(group)]
            made = self.method.synthesise(names, group, rng=rng).images
            assert made is not None  # a synthesiser makes pictures
            images += [to_pixels(image) for image in made]
            people += group
        return Protected(images, (PictureReport(),) * len(images), tuple(people))

    def __repr__(self) -> str:
        changed = [f"{name}={now!r}" for name, (_, now) in self._changed().items()]
        return f"load_method({', '.join([repr(self.name), *changed])})"

    def _repr_html_(self) -> str:
        changed = self._changed()
        rows = [(name, str(value), "" if name in changed else "default") for name, value in _flat(self.config)]
        return html_table(("setting", "value", ""), rows, caption=f"{self.name}: {self.method.summary}")

    def _changed(self) -> dict[str, tuple[Any, Any]]:
        return differing(as_dict(self.method.default), as_dict(self.config))

    def _randomness(self, key: str | Path | Key | None, seed: int | None) -> Randomness:
        if key is not None and seed is not None:
            raise UsageError("give a key or a seed, not both")
        if seed is not None:
            root = Randomness.from_seed(seed)
        elif isinstance(key, Key):
            root = key.randomness
        elif key is not None:
            root = read_or_create_key(Path(key))[0].randomness
        elif self.method.random:
            raise UsageError(f"{self.name} draws random values: give a key file (key=...), or for research a seed")
        else:
            root = Randomness.from_seed(0)  # nothing is drawn from it
        return bind(root, self.method)

    def _releases(
        self, tensors: list[Tensor], items: tuple[str, ...], who: tuple[str | None, ...], rng: Randomness
    ) -> Iterator[tuple[tuple[int, ...], Release]]:
        """Positions of pictures that are protected together, and their release."""
        if not tensors:
            return
        if isinstance(self.method, Mixes):
            for group in self.method.groups([Item(*each) for each in zip(items, who, strict=True)], rng=rng):
                batch = _batch(_of_one_size([tensors[place] for place in group]), group, items, who)
                yield group, self.method.protect(batch, rng=rng)
            return
        sizes: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for place, image in enumerate(tensors):
            sizes[tuple(image.shape)].append(place)
        groups = [tuple(places) for places in sizes.values()]
        batches = [_batch([tensors[place] for place in group], group, items, who) for group in groups]
        yield from zip(groups, self.method.protect_many(batches, rng=rng), strict=True)


def _batch(
    images: list[Tensor], group: Sequence[int], items: tuple[str, ...], who: tuple[str | None, ...]
) -> ImageBatch:
    return ImageBatch(
        torch.stack(images), tuple(items[place] for place in group), tuple(who[place] for place in group)
    )


def _of_one_size(images: list[Tensor]) -> list[Tensor]:
    """Pictures that are mixed, in the size of the middle one, as in a folder."""
    sizes = sorted(((image.shape[1], image.shape[2]) for image in images), key=math.prod)
    height, width = sizes[(len(sizes) - 1) // 2]
    return [
        image
        if tuple(image.shape[1:]) == (height, width)
        else torch.from_numpy(resized(to_pixels(image), height, width)).permute(2, 0, 1).float().div_(255)
        for image in images
    ]


def _flat(config: Any) -> list[tuple[str, object]]:
    """Settings by their dotted names, as they are set."""
    found: list[tuple[str, object]] = []
    for name, value in as_dict(config).items():
        inner = getattr(config, name)
        if isinstance(value, dict) and not isinstance(inner, Mapping):
            found += [(f"{name}.{below}", deep) for below, deep in _flat(inner)]
        else:
            found.append((name, value))
    return found
