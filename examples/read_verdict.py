"""Audit a release and decide on its verdict in Python, as a pipeline would before it publishes anything.

python examples/read_verdict.py
"""

from __future__ import annotations

from pathlib import Path

import veilkit
from veilkit.synthetic.people import generate_people


def main(work: Path, people: int = 8) -> bool:
    """Protect and audit generated people in `work`, which must be new; whether the release may go out."""
    generate_people(work / "photos", identities=people, images=4, cameras=2, seed=0, height=96)
    veilkit.protect(work / "photos", work / "release", "pixelate", settings={"cell": 32})

    audit = veilkit.audit(work / "photos", work / "release", attacks=["linkage", "own_original"])

    print(audit)  # in a notebook, a table
    for verdict in audit.verdicts:
        if verdict.worst is not None:
            print(f"{verdict.level}: {verdict.worst.text}")
    kept = audit.score("expert", "protected-protected", "rank-1")
    if kept is not None:
        print(f"the expert still finds the right person first in {kept.value:.0%} of searches")
    publish = not audit.alarms and not any(verdict.grade.leak for verdict in audit.verdicts)
    print("publish" if publish else "do not publish", "- the report is", work / "release.audit" / "report.html")
    return publish


if __name__ == "__main__":
    main(Path("runs/examples/read_verdict"))
