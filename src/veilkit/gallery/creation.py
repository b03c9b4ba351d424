"""Making an empty gallery: gallery.json comes last, so that a stopped creation leaves none."""

from __future__ import annotations

import json
import secrets
from pathlib import Path

from veilkit.errors import ConfigError, DestinationError, UsageError
from veilkit.gallery.facts import FACTS, Facts, write_facts
from veilkit.gallery.milvus import VectorStore, check_url
from veilkit.gallery.private import Catalogue, gallery_secret, private_file
from veilkit.key import read_or_create_key
from veilkit.privacy import Budget, Ledger, Mechanism, affordable
from veilkit.privacy.ledger import Per
from veilkit.version import __version__


def create_gallery(
    folder: Path,
    key_file: Path,
    mechanism: Mechanism,
    budget: Budget,
    per: Per,
    expert: tuple[str, str] | None,
    url: str | None,
    collection: str | None,
) -> Facts:
    """Make key, ledger, collection and gallery.json; see `Gallery.create`."""
    if per not in ("record", "person"):
        raise ConfigError(f"per must be 'record' or 'person', but got {per!r}")
    if affordable(mechanism.cost, budget) < 1:
        raise ConfigError(
            f"a budget of epsilon {budget.epsilon:g}, delta {budget.delta:g} does not allow one release at epsilon "
            f"{mechanism.cost.epsilon:g}, delta {mechanism.cost.delta:g}: give a larger budget or a smaller epsilon"
        )
    if url is not None:
        check_url(url)
    elif collection is not None:
        raise ConfigError("a collection is named on a server: give its URL too, or leave the collection out")
    folder = _empty(folder)
    if folder == key_file.resolve().parent or folder in key_file.resolve().parents:
        raise UsageError(f"the key must be kept apart from the gallery, but {key_file} is in {folder}")
    name = secrets.token_hex(16)
    key, _ = read_or_create_key(key_file)
    facts = Facts(
        veilkit=__version__,
        gallery=name,
        dimension=mechanism.dimension,
        expert=None if expert is None else expert[0],
        expert_fingerprint=None if expert is None else expert[1],
        mechanism=json.loads(mechanism.describe()),
        guarantee=mechanism.guarantee().text,
        epsilon_claimed=mechanism.epsilon,
        epsilon_proved=mechanism.cost.epsilon,
        delta=mechanism.cost.delta,
        per=per,
        budget_epsilon=budget.epsilon,
        budget_delta=budget.delta,
        key_commitment=gallery_secret(key, name).tag("commitment").hex(),
        url=url,
        collection=collection or f"veilkit_{name}",
    )
    with VectorStore(facts.uri(folder), facts.collection, dimension=facts.dimension) as store:
        if collection is not None and store.exists():
            raise DestinationError(f"the server has a collection {collection!r} already: choose another name")
        store.make()
    with Ledger(private_file(key_file, name, "ledger"), budget=budget, per=per):
        Catalogue(private_file(key_file, name, "catalogue"), new=True).close()
    write_facts(folder, facts)
    return facts


def _empty(folder: Path) -> Path:
    """The folder, made where it is not there; whatever else is in it is not ours to mix with."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / FACTS).exists():
            raise DestinationError(f"there is a gallery at {folder} already: add to it, or choose another folder")
        if any(not (entry.name.startswith(".") or entry.name.startswith("vectors.")) for entry in folder.iterdir()):
            raise DestinationError(f"expected a new or empty folder for a gallery, but {folder} holds other files")
    except OSError as error:
        raise DestinationError(f"the gallery {folder} cannot be written: {error.strerror}") from None
    return folder.resolve()
