"""What each attack's headline means, as a sentence. An attack without one here is told by its own summary."""

from __future__ import annotations

from dataclasses import dataclass

_UNDONE = "An attacker {who} {what}; in {{value}} of them{{interval}} {{judge}} then finds the very original"
_MIXED = "who knows how pictures were mixed, but not the key,"
_TOLD = "tells which is which in {value} of such pairs{interval}"
_PERSON = "Of a training person and somebody who was not trained on, an attacker with {signal} " + _TOLD
_PICTURE = "Of a picture that was trained on and one that was not, an attacker with {signal} " + _TOLD
_SIGNALS = {
    "set": "the synthetic pictures alone",
    "labels": "the soft labels",
    "student": "a student of the release",
    "shadows": "shadow models",
}


@dataclass(frozen=True, slots=True)
class Phrase:
    """A title for a finding and its text, which holds {value}, {interval}, and {judge} or {Judge}, who searches.

    blind: what blind guessing does. metric: the headline; the first score of the evidence where it is empty.
    """

    title: str
    text: str
    blind: str = "finds"
    metric: str = "rank-1"


def _undone(title: str, who: str, what: str) -> Phrase:
    return Phrase(title, _UNDONE.format(who=who, what=what))


def _member(text: str, title: str, signal: str) -> Phrase:
    return Phrase(title, text.replace("{signal}", _SIGNALS[signal]), "in", metric="AUC")


PHRASES: dict[str, Phrase] = {
    "jigsaw": _undone("Patches put back together", _MIXED, "puts the pictures' patches back together"),
    "unmix": _undone("Blended pictures taken apart", _MIXED, "takes the blended pictures apart again"),
    "recovery": _undone(
        "Pictures recovered", "whose network learned from other people's pairs", "recovers the originals"
    ),
    "recovery_features": _undone(
        "Pictures recovered with features",
        "whose network learned from other people's pairs and sees a recogniser's features",
        "recovers the originals",
    ),
    "averaging": Phrase(
        "Protections averaged",
        "An attacker who gets several protections of one picture averages them; in {value} of them{interval} "
        "{judge} then finds the very original",
        metric="",
    ),
    "stolen_decoder": _undone("Pictures decoded", "who stole the secret decoder", "recovers the originals with it"),
    "embedding_inversion": Phrase(
        "Embeddings inverted",
        "An attacker whose network learned on other people how protection moves embeddings guesses the original's; "
        "by {value} of the guesses{interval} {judge} finds the very original",
    ),
    "identity_inversion": Phrase(
        "Identities inverted with the stolen model",
        "An attacker who has stolen the protection's model, and learned with its own identity expert how it moves "
        "identities, guesses the original's; by {value} of the guesses{interval} that expert finds the very original",
    ),
    "feature_decoder": _undone(
        "Pictures decoded from features",
        "who holds the authorised recogniser",
        "decodes its features of protected pictures",
    ),
    "feature_matching": _undone(
        "Pictures matched to features",
        "who holds the authorised recogniser",
        "changes pictures until it sees the same features in them",
    ),
    "feature_reconstruction": _undone(
        "Pictures decoded from released features", "whose decoder learned from other people", "recovers the originals"
    ),
    "stock_recogniser": Phrase(
        "People told apart in the release",
        "{Judge} that sees only the protected pictures finds the right person {value} of the time{interval}",
    ),
    "linkage": Phrase(
        "Protected pictures linked to people",
        "{Judge} that holds other, raw pictures of these people names the person in a protected one {value} of the "
        "time{interval}",
        "names",
    ),
    "farthest_match": Phrase(
        "Protected pictures linked by being unlike",
        "{Judge} that holds other, raw pictures of these people and looks for the least similar names the person in "
        "a protected one {value} of the time{interval}",
        "names",
    ),
    "attribute_path": Phrase(
        "People told by what is not identity",
        "{Judge} that holds raw pictures of these people names the person {value} of the time{interval} in pictures "
        "that were all given one and the same identity",
        "names",
    ),
    "own_original": Phrase(
        "Protected pictures linked to their originals",
        "{Judge} that holds all originals finds the very one that a protected picture was made from {value} of the "
        "time{interval}",
    ),
    "retrained": Phrase(
        "People found by a retrained recogniser",
        "A recogniser that was trained on other people's protected pictures finds the right person {value} of the "
        "time{interval}",
    ),
    "identification": Phrase(
        "People named by examples",
        "An attacker who knows who is in some released pictures names the same people in others {value} of the "
        "time{interval}",
        "names",
        metric="",
    ),
    "silhouette": Phrase(
        "Outlines of people",
        "A network that learned from other people's outlines tells a pixel of the person from one of the background "
        "in {value} of such pairs{interval}, beyond what the place in the picture tells",
        "tells",
        metric="AUC beyond place",
    ),
    "class_linkage": Phrase(
        "Classes linked to people",
        "{Judge} that holds pictures of all training people names the person whom a class of synthetic pictures "
        "stands for {value} of the time{interval}",
        "names",
    ),
    "memorisation": Phrase(
        "Training pictures memorised",
        "{value} of the synthetic pictures{interval} come nearer, pixel by pixel, to a training picture than to any "
        "of equally many pictures of people who were not trained on",
        "gives",
        metric="nearer to training (pixels)",
    ),
    **{
        f"membership_{signal}_person": _member(_PERSON, "Training people told from others", signal)
        for signal in _SIGNALS
    },
    **{
        f"membership_{signal}_picture": _member(_PICTURE, "Training pictures told from others", signal)
        for signal in _SIGNALS
    },
}
ASIDE = frozenset({"silhouette", "attribute_path"})
"""Attacks that do not tell who a person in the release is, and so take no part in a level's grade."""
