"""Whether the store holds just what the ledger has paid for.

What the store holds is out. Where the ledger does not know of it, an older copy of the private folder was restored,
and a record drawn again would be out twice while one release is charged. So nothing is released until they agree.
"""

from __future__ import annotations

from dataclasses import dataclass

from veilkit.errors import DataError
from veilkit.gallery.milvus import VectorStore
from veilkit.gallery.private import Private, pages
from veilkit.privacy import Mechanism

PAGE = 2000  # vectors compared at once


@dataclass(frozen=True, slots=True)
class Agreement:
    """paid: pseudonyms in the ledger, in their order. stored: how many vectors the store holds.

    missing: paid for and not stored. foreign: how many are stored and not paid for. changed: stored as another vector
    than the one that was paid for; None where vectors were not compared.
    """

    paid: tuple[str, ...]
    stored: int
    missing: tuple[str, ...]
    foreign: int
    changed: tuple[str, ...] | None = None

    def refuse_unpaid(self) -> None:
        """Raise DataError where something is out that nobody was charged for."""
        if self.foreign or self.changed:
            other = f", and {len(self.changed)} as other vectors than the ledger's" if self.changed else ""
            raise DataError(
                f"the store holds {self.foreign} vectors that the ledger does not know of, beside "
                f"{len(self.paid) - len(self.missing)} that it does{other}: most likely the private files are an "
                "older copy. Nothing was changed: to release those records again would go uncharged. Restore the "
                "latest copy; without one, `veilkit gallery reconcile GALLERY SOURCE` charges them, SOURCE being "
                "what was added since that copy"
            )


def compare(private: Private, store: VectorStore, mechanism: Mechanism, *, vectors: bool) -> Agreement:
    """Ledger against store, by names; by vectors as well if wanted, which takes three times as long."""
    paid = private.released()
    stored = store.count() if store.exists() else 0
    held: set[str] = set()
    changed: list[str] = []
    for page in pages(paid if stored else [], PAGE):
        if not vectors:
            held |= store.held(page)
            continue
        ours = private.ledger.released(mechanism, page)
        for name, (vector, _, _) in store.vectors(page).items():
            held.add(name)
            if name not in ours or vector.tobytes() != ours[name].astype("float32").tobytes():
                changed.append(name)
    missing = tuple(name for name in paid if name not in held)
    return Agreement(tuple(paid), stored, missing, stored - len(held), tuple(changed) if vectors else None)
