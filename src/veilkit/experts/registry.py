"""Experts by name: the built-in ones and the user's own; and what is asked of a model before it gets a name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilkit.bounded_files import read_metadata
from veilkit.display import Table
from veilkit.errors import CheckpointError, ConfigError, MissingExtraError, UnknownNameError
from veilkit.experts.base import Description, Embedder, ExpertInfo
from veilkit.experts.builtin import BUILT_IN
from veilkit.experts.names import SUFFIXES, expert_names, file_sha256, is_file_name, unknown_expert
from veilkit.experts.onnx import OnnxEmbedder
from veilkit.experts.preprocessing import NORMALISATIONS, Normalisation, Order, size_text
from veilkit.experts.store import Entry, ExpertStore, check_name
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.experts.trial import Tried, try_embedder, try_onnx
from veilkit.lookup import unknown_name

_PICKLED = (".bin", ".ckpt", ".joblib", ".pickle", ".pkl", ".pt", ".pth", ".tar")


@dataclass(frozen=True, slots=True)
class Addition:
    """What the user says of a model that is to be added.

    An ONNX file says nothing of its normalisation, so that must be given; `size` may be left out where the network is
    bound to one. A .safetensors file of veilkit holds both itself. sha256: if given, the file must have it; for a
    .safetensors file the one that training printed will do as well. flip: average the features of each image and its
    mirror image, at twice the cost.
    """

    name: str
    licence: str
    source: str = ""
    sha256: str | None = None
    size: tuple[int, int] | None = None
    normalisation: Normalisation | None = None
    order: Order | None = None
    flip: bool = False
    card: str = ""


def load_expert(name_or_path: str | Path, *, flip: bool | None = None) -> Embedder:
    """A built-in expert, one the user has added, or the Re-ID network of a .safetensors file, by its path.

    flip: whether to average the features of each image and its mirror image, at twice the cost. None is as the
    expert was added; files and built-in experts do without.
    """
    if is_file_name(name_or_path):
        return _load_file(Path(name_or_path), flip=bool(flip))
    name = str(name_or_path)
    if name in BUILT_IN:
        return BUILT_IN[name](flip=bool(flip))
    store = ExpertStore()
    if name not in store.names():
        raise unknown_expert(name)
    entry = store.read(name)
    return _load_registered(store, entry, flip=entry.flip if flip is None else flip)


def describe_expert(name: str) -> ExpertInfo:
    """Who an expert is; the user's own are described from their records, without loading any weights."""
    if name in BUILT_IN:
        return BUILT_IN[name]().info
    store = ExpertStore()
    if name not in store.names():
        raise UnknownNameError(unknown_name("expert", name, dict.fromkeys(expert_names())))
    entry = store.read(name)
    by_torch = entry.file.endswith(".safetensors")
    return ExpertInfo(
        name, entry.kind, entry.dim, entry.sha256, by_torch, preprocessing=entry.preprocessing, flip=entry.flip,
        **_description(store, entry),
    )  # fmt: skip


def add_expert(file: Path, addition: Addition) -> ExpertInfo:
    """Try a model and keep a copy under a name; a model that is refused leaves nothing behind."""
    _check_request(file, addition)
    if addition.sha256 is not None:
        _check_sha256(file, addition.sha256)
    tried = _tried(file, addition)
    entry = Entry(
        name=addition.name,
        file="weights.onnx" if file.suffix == ".onnx" else "weights.safetensors",
        sha256=tried.sha256,
        licence=addition.licence.strip(),
        source=addition.source.strip(),
        dim=tried.dim,
        preprocessing=tried.preprocessing,
        flip=addition.flip,
    )
    ExpertStore().put(entry, file, addition.card)
    return describe_expert(addition.name)


def remove_expert(name: str) -> None:
    """Forget one of the user's own experts and delete its copy of the weights."""
    if name in BUILT_IN:
        raise ConfigError(f"{name!r} comes with veilkit and cannot be removed")
    ExpertStore().remove(name)


def _load_file(path: Path, *, flip: bool) -> Embedder:
    _check_suffix(path)
    if path.suffix == ".onnx":
        raise ConfigError(
            f"{path.name}: an ONNX file does not say its normalisation; register it with `veilkit experts add` "
            "and load it by its name"
        )
    return TorchEmbedder.load(path, flip=flip)


def _load_registered(store: ExpertStore, entry: Entry, *, flip: bool) -> Embedder:
    path, description = store.verified_weights(entry), _description(store, entry)
    if entry.file == "weights.onnx":
        return OnnxEmbedder.load(path, entry.preprocessing, name=entry.name, flip=flip, **description)
    return TorchEmbedder.load(path, name=entry.name, flip=flip, **description)


def _description(store: ExpertStore, entry: Entry) -> Description:
    return {"licence": entry.licence, "source": entry.source, "origin": "user", "card": store.card(entry.name)}


def _check_request(file: Path, addition: Addition) -> None:
    check_name(addition.name)
    if addition.name in expert_names():
        hint = "comes with veilkit" if addition.name in BUILT_IN else f"see: veilkit experts show {addition.name}"
        raise ConfigError(f"the name {addition.name!r} is taken ({hint}); choose another")
    if not addition.licence.strip():
        raise ConfigError("the licence of the weights must be stated, like 'MIT' or 'research only'")
    _check_suffix(file)
    if not file.is_file():
        raise CheckpointError(f"{file}: no such model file")


def _check_suffix(file: Path) -> None:
    if file.suffix in SUFFIXES:
        return
    if file.suffix in _PICKLED:
        raise CheckpointError(
            f"{file.name}: such files are pickles, which can run code when they are opened, and are never loaded; "
            "export the network to ONNX"
        )
    raise CheckpointError(f"{file.name}: expected a file ending in {' or '.join(SUFFIXES)}, but got {file.suffix!r}")


def _check_sha256(file: Path, expected: str) -> None:
    found = {file_sha256(file)}
    if file.suffix == ".safetensors" and (own := _stated_sha256(file)):
        found.add(own)  # loading makes sure that the content has it
    if expected.strip().lower() not in found:
        raise CheckpointError(
            f"{file.name}: expected SHA-256 {expected.strip().lower()}, but got {' or '.join(sorted(found))}; "
            "this is not the file that was meant"
        )


def _stated_sha256(file: Path) -> str | None:
    try:
        return read_metadata(file).get("sha256")
    except CheckpointError:
        return None


def _tried(file: Path, addition: Addition) -> Tried:
    if file.suffix == ".safetensors":
        if addition.size or addition.normalisation or addition.order:
            raise ConfigError(f"{file.name} holds its input size and normalisation itself; leave them out")
        embedder = TorchEmbedder.load(file, name=addition.name, flip=addition.flip)
        try_embedder(embedder)
        assert embedder.info.preprocessing is not None  # a Re-ID network has it
        return Tried(embedder.dim, embedder.sha256, embedder.info.preprocessing)
    if addition.normalisation is None:
        raise ConfigError(
            "an ONNX file does not say its normalisation; give one of "
            f"{', '.join(sorted(NORMALISATIONS))} or MEAN,MEAN,MEAN/STD,STD,STD"
        )
    return try_onnx(
        file,
        addition.normalisation,
        name=addition.name,
        size=addition.size,
        order=addition.order or "rgb",
        flip=addition.flip,
    )


def experts() -> Table:
    """The recognisers that can judge or supervise: those that come with veilkit, then your own."""
    rows = []
    for name in expert_names():
        try:
            info = describe_expert(name)
        except (CheckpointError, MissingExtraError) as error:
            rows.append((name, "", "", "", "", f"not usable: {error}"))
            continue
        size = size_text(info.preprocessing.size) if info.preprocessing else "any size"
        supervises = "yes" if info.differentiable else "no"
        rows.append((name, str(info.dim), size, supervises, info.origin, info.licence))
    return Table("expert", ("name", "features", "input", "supervises", "origin", "licence"), rows)
