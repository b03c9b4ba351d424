"""The attacks as a table for people: `veilkit.attacks()`."""

from __future__ import annotations

from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS
from veilkit.display import Table


def attacks() -> Table:
    """All attacks of an audit: what their attacker knows (L0 to L3), what they attack, and what they do."""
    kinds = (("pictures", ATTACKS), ("synthetic", UNPAIRED_ATTACKS))
    rows = [(name, str(attack.level), on, attack.summary) for on, table in kinds for name, attack in table.items()]
    return Table("attack", ("name", "level", "on", "what it does"), rows)
