"""A drawn face laid into a photograph as if it had been there: outline, colours, light, sharpness, grain, seam.

Pictures are float32 HWC in [0, 1], points (P, 2) as x, y in pixels of the picture, landmarks the 68 of iBUG.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.configs import check_range

Picture: TypeAlias = NDArray[np.float32]
Points: TypeAlias = NDArray[np.float64]

_JAW, _BROWS, _LEFT_EYE, _RIGHT_EYE, _MOUTH = range(17), range(17, 27), range(36, 42), range(42, 48), range(48, 60)
_PROXY = 96  # pixels a side of the small pictures in which what varies slowly is worked out
_LEVELS = 5
_ANGLES, _RADII = 96, 24  # of the ways along which a seam is looked for
_PAST = 0.04  # of the distance of the eyes' outer corners, past the drawn jaw
_WORST, _JUMP = 60.0, 4.0  # the most that a place of it counts, and what a step from one radius to the next costs
_SHARPNESS = (0.0, 0.5, 0.7, 0.9, 1.2, 1.6, 2.1, 2.8, 3.7, 5.0)  # standard deviations of the blurs that are tried


@dataclass(frozen=True, slots=True)
class BlendConfig:
    """How a drawn face is laid into a photograph. Lengths are shares of the distance between the eyes' outer corners.

    brows: how far above the brows the new face begins. margin: how far inside of the jaw's line it ends. forehead,
    beyond: how much farther it may go, above the brows and past the jaw, along whatever way the two pictures differ
    least. reach: what going all that way may cost, in CIELAB's units of difference along the seam. soft: width of the
    seam. tone: share of the way from the drawn face's colours to the photograph's. light: cells, along a side
    of the face, in which light and shade are taken over from the photograph; 0 takes none over. seam: the most, in
    [0, 1], by which what lies at the seam changes the colours inside.
    """

    brows: float = 0.25
    margin: float = 0.02
    forehead: float = 1.2
    beyond: float = 0.25
    reach: float = 60.0
    soft: float = 0.08
    tone: float = 1.0
    light: int = 0
    seam: float = 0.12

    def __post_init__(self) -> None:
        most_of = {"brows": 1.0, "margin": 0.3, "forehead": 1.5, "beyond": 0.3, "soft": 0.5, "tone": 1.0, "seam": 1.0}
        for name, most in most_of.items():
            check_range(name, getattr(self, name), 0.0, most)
        check_range("reach", self.reach, 0.0, 200.0)
        check_range("light", self.light, 0, 16)


def outline(points: Points, above: float, inside: float) -> Points:
    """The convex polygon around a face: so far above the brows, and so far inside of the jaw's line."""
    eyes = eye_distance(points)
    up = points[list(_LEFT_EYE) + list(_RIGHT_EYE)].mean(0) - points[8]
    up = up / max(1e-6, float(np.hypot(*up)))
    jaw, middle = points[list(_JAW)], points[27:36].mean(0)
    inwards = middle - jaw
    inwards = inwards / np.maximum(1e-6, np.linalg.norm(inwards, axis=1, keepdims=True))
    jaw = jaw + inside * eyes * inwards
    return np.concatenate([jaw, points[list(_BROWS)] + above * eyes * up])


def blended(
    photo: Picture,
    points: Points,
    face: Picture,
    face_points: Points,
    config: BlendConfig,
    grain: np.random.Generator,
) -> Picture:
    """`photo` (H, W, 3) with the face of `face` (S, S, 3) in place of the one at `points`.

    The drawn face is turned, scaled and shifted by the similarity that takes its landmarks nearest to the photo's,
    and nothing more: its own features stay its own. What lies outside of the outline keeps its values to the bit.
    """
    widest = outline(points, max(config.brows, config.forehead), min(config.margin, -config.beyond))
    rows, columns = _around(photo, widest, config.soft * eye_distance(points))
    part = photo[rows, columns]
    if min(part.shape[:2]) < 4:
        return photo
    points = points - (columns.start, rows.start)
    matrix = nearest_similarity(face_points, points)
    made = _laid(face, matrix, part.shape[:2])
    made_points = face_points @ matrix[:, :2].T + matrix[:, 2]
    core = _core(points, made_points, part.shape[:2], config)
    if not core.any():
        return photo
    skin = _skin(made_points, points, core)
    made = _toned(made, part, skin, config.tone)
    if config.light:
        made = _lit(made, part, skin, config.light)
    mask = _soft(_seam(core, points, made_points, made, part, config), config.soft * eye_distance(points))
    if float(mask.max()) < 0.5:
        return photo
    made = made + _membrane(part - made, mask, config.seam)
    made = _as_sharp(made, part, skin, grain)
    result = photo.copy()
    mixed = np.clip(part + mask[..., None] * (made - part), 0, 1)
    result[rows, columns] = np.where(mask[..., None] > 0, mixed, part)
    return result


def nearest_similarity(points: Points, places: Points) -> Points:
    """(2, 3): the turn, scale and shift that takes points nearest to places, least squares; the jaw weighs less."""
    weights = np.ones(len(points))
    weights[list(_JAW)] = 0.3
    weights /= weights.sum()
    p, q = (a[:, 0] + 1j * a[:, 1] for a in (points, places))
    p0, q0 = (weights * p).sum(), (weights * q).sum()
    a = (weights * (p - p0).conj() * (q - q0)).sum() / max(1e-9, float((weights * abs(p - p0) ** 2).sum()))
    shift = q0 - a * p0
    return np.array([[a.real, -a.imag, shift.real], [a.imag, a.real, shift.imag]])


def skin_lightness(picture: Picture, points: Points) -> float:
    """CIELAB's L of nose and cheeks, the median."""
    lightness = cv2.cvtColor(np.clip(picture, 0, 1), cv2.COLOR_RGB2LAB)[..., 0]
    cheeks = [(points[1:4] + points[31]) / 2, (points[13:16] + points[35]) / 2]
    places = np.round(np.concatenate([points[27:31], *cheeks])).astype(int)
    near = max(1, round(0.03 * eye_distance(points)))
    height, width = lightness.shape
    values = [
        lightness[max(0, y - near) : y + near + 1, max(0, x - near) : x + near + 1].ravel()
        for x, y in places
        if 0 <= x < width and 0 <= y < height
    ]
    return float(np.median(np.concatenate(values))) if values else 65.0


def hair_on_forehead(picture: Picture, points: Points) -> float:
    """Share of places a little above the brows that are much darker or lighter than the face's skin."""
    up = points[list(_LEFT_EYE) + list(_RIGHT_EYE)].mean(0) - points[8]
    up = up / max(1e-6, float(np.hypot(*up))) * eye_distance(points)
    places = np.concatenate([points[list(_BROWS)] + share * up for share in (0.12, 0.2)])
    lightness = cv2.cvtColor(np.clip(cv2.GaussianBlur(picture, (0, 0), 1.0), 0, 1), cv2.COLOR_RGB2LAB)[..., 0]
    rows = np.clip(np.round(places).astype(int), 0, (picture.shape[1] - 1, picture.shape[0] - 1))
    apart = abs(lightness[rows[:, 1], rows[:, 0]] - skin_lightness(picture, points))
    return float((apart > 18).mean())


def eye_distance(points: Points) -> float:
    """Between the eyes' outer corners."""
    return float(np.hypot(*(points[45] - points[36])))


def _around(photo: Picture, polygon: Points, more: float) -> tuple[slice, slice]:
    height, width = photo.shape[:2]
    left, top = np.floor(polygon.min(0) - more).astype(int).tolist()
    right, bottom = np.ceil(polygon.max(0) + more).astype(int).tolist()
    rows = slice(min(max(0, top), height), max(0, min(height, bottom + 1)))
    columns = slice(min(max(0, left), width), max(0, min(width, right + 1)))
    return slice(rows.start, max(rows.start, rows.stop)), slice(columns.start, max(columns.start, columns.stop))


def _laid(face: Picture, matrix: Points, shape: tuple[int, ...]) -> Picture:
    scale = math.sqrt(abs(float(np.linalg.det(matrix[:, :2]))))
    if scale < 0.8:  # or lines of it would be skipped
        face = np.asarray(cv2.GaussianBlur(face, (0, 0), 0.45 / max(scale, 1e-3)), np.float32)
    flags = cv2.INTER_CUBIC if scale > 1 else cv2.INTER_LINEAR
    laid = cv2.warpAffine(face, matrix, (shape[1], shape[0]), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(np.clip(laid, 0, 1), np.float32)


def _filled(polygon: Points, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    filled = np.zeros(shape, np.uint8)
    hull = cv2.convexHull(np.round(polygon * 16).astype(np.int32).reshape(-1, 1, 2))
    cv2.fillConvexPoly(filled, hull, 1, shift=4)
    return filled


def _core(points: Points, made_points: Points, shape: tuple[int, ...], config: BlendConfig) -> NDArray[np.uint8]:
    """(H, W): 1 in the photo's outline, less what the drawn face does not cover."""
    inner = [_filled(outline(at, config.brows, config.margin), shape) for at in (points, made_points)]
    return np.asarray(inner[0] & inner[1] | _filled(points[17:], shape))  # eyes, nose and mouth go in any case


def _seam(
    core: NDArray[np.uint8],
    points: Points,
    made_points: Points,
    made: Picture,
    photo: Picture,
    config: BlendConfig,
) -> NDArray[np.uint8]:
    """(H, W): `core`, grown to a closed line along which the two pictures differ little, as far out as that allows.

    The line is the cheapest way around the nose, in polar coordinates, by dynamic programming.
    """
    above = max(config.brows, config.forehead)
    outer = _filled(outline(points, above, min(config.margin, -config.beyond)), core.shape)
    # Past the drawn jaw there are the clothes and the background of nobody.
    outer = outer & _filled(outline(made_points, above, -min(config.beyond, _PAST)), core.shape) | core
    x, y = points[29]
    angles = np.linspace(0, 2 * np.pi, _ANGLES, endpoint=False)
    far = np.arange(1, 2 * max(core.shape))[None]
    rows = (y + np.sin(angles)[:, None] * far).round().astype(int)
    columns = (x + np.cos(angles)[:, None] * far).round().astype(int)
    there = (rows >= 0) & (rows < core.shape[0]) & (columns >= 0) & (columns < core.shape[1])
    rows, columns = rows.clip(0, core.shape[0] - 1), columns.clip(0, core.shape[1] - 1)
    least, last = (((area[rows, columns] > 0) & there).sum(1) for area in (core, outer))
    steps = np.linspace(0, 1, _RADII)
    radii = least[:, None] + np.maximum(0, last - least)[:, None] * steps
    blur = max(0.5, 0.03 * eye_distance(points))
    one, other = (
        cv2.cvtColor(cv2.GaussianBlur(np.clip(image, 0, 1), (0, 0), blur), cv2.COLOR_RGB2LAB)
        for image in (made, photo)
    )
    apart = np.minimum(np.sqrt(((one - other) ** 2).sum(2)), _WORST)
    at_y = (y + np.sin(angles)[:, None] * radii).round().astype(int).clip(0, core.shape[0] - 1)
    at_x = (x + np.cos(angles)[:, None] * radii).round().astype(int).clip(0, core.shape[1] - 1)
    chosen = _cheapest(apart[at_y, at_x] + config.reach * (1 - steps))
    radius = radii[np.arange(_ANGLES), chosen]
    line = np.stack([x + np.cos(angles) * radius, y + np.sin(angles) * radius], 1)
    grown = np.zeros_like(core)
    cv2.fillPoly(grown, [np.round(line * 16).astype(np.int32).reshape(-1, 1, 2)], 1, shift=4)
    return np.asarray(grown | core)


def _cheapest(costs: Points) -> NDArray[np.int64]:
    """(A, R) of a place at each angle and radius -> (A,) the closed way of least cost that jumps little."""
    jump = _JUMP * abs(np.arange(costs.shape[1])[:, None] - np.arange(costs.shape[1])[None])
    turns = np.concatenate([costs, costs])  # the second time around, the start is where the first one ended
    total, came = turns[0], []
    for row in turns[1:]:
        ways = total[None] + jump
        came.append(ways.argmin(1))
        total = row + ways.min(1)
    way = [int(total.argmin())]
    for back in reversed(came):
        way.append(int(back[way[-1]]))
    half = len(costs) // 2
    return np.roll(np.array(way[::-1])[half : half + len(costs)], half)


def _soft(solid: NDArray[np.uint8], wide: float) -> Picture:
    """(H, W) in [0, 1]: soft inwards from the edge."""
    framed = cv2.copyMakeBorder(solid, 1, 1, 1, 1, cv2.BORDER_CONSTANT, value=1)  # a face cut by the picture's edge
    inside = cv2.distanceTransform(framed, cv2.DIST_L2, 5)[1:-1, 1:-1]
    ramp = np.clip(inside / max(1.0, wide), 0, 1)
    return np.asarray(ramp * ramp * (3 - 2 * ramp) * solid, np.float32)


def _skin(made_points: Points, points: Points, core: NDArray[np.uint8]) -> Picture:
    """Where, in all likelihood, both show skin: inside of the outline, without eyes, brows and mouth."""
    skin = core.copy()
    for shown in (points, made_points):
        wider = max(1, round(0.06 * eye_distance(shown)))
        features = np.zeros_like(skin)
        for part in (_LEFT_EYE, _RIGHT_EYE, _MOUTH, range(17, 22), range(22, 27)):
            features |= _filled(shown[list(part)], skin.shape)
        grown = cv2.dilate(features, np.ones((2 * wider + 1, 2 * wider + 1), np.uint8))
        skin[grown > 0] = 0
    return np.asarray(skin if skin.sum() > 16 else core, np.float32)


def _toned(made: Picture, photo: Picture, skin: Picture, share: float) -> Picture:
    """Skin of the same mean and spread in CIELAB."""
    ours, theirs = (
        np.asarray(cv2.cvtColor(np.clip(image, 0, 1), cv2.COLOR_RGB2LAB), np.float32) for image in (made, photo)
    )
    chosen = skin > 0
    mean, spread = _robust(ours[chosen])
    goal, width = _robust(theirs[chosen])
    factor = np.clip(width / np.maximum(spread, 0.5), (0.6, 0.6, 0.6), (1.2, 1.1, 1.1))
    changed = (ours - mean) * (1 + share * (factor - 1)) + mean + share * (goal - mean)
    return np.asarray(cv2.cvtColor(changed.astype(np.float32), cv2.COLOR_LAB2RGB), np.float32)


def _robust(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    middle = np.median(values, 0)
    return middle, 1.4826 * np.median(abs(values - middle), 0)


def _lit(made: Picture, photo: Picture, skin: Picture, cells: int) -> Picture:
    """Light and shade of the photo, as far as they vary over a share 1 / cells of the face."""
    height, width = skin.shape
    size = (_PROXY, _PROXY)
    weight = cv2.resize(skin, size, interpolation=cv2.INTER_AREA)
    blur = _PROXY / (2.0 * cells)

    def smooth(image: Picture) -> Picture:
        grey = cv2.resize(image.mean(2), size, interpolation=cv2.INTER_AREA)
        total = cv2.GaussianBlur(weight, (0, 0), blur) + 1e-3
        return np.asarray((cv2.GaussianBlur(grey * weight, (0, 0), blur) + 1e-3 * 0.5) / total, np.float32)

    ratio = np.clip(smooth(photo) / np.maximum(smooth(made), 0.02), 0.6, 1.6)
    return np.asarray(
        made * cv2.resize(ratio, (width, height), interpolation=cv2.INTER_LINEAR)[..., None], np.float32
    )


def _membrane(apart: Picture, mask: Picture, most: float) -> Picture:
    """What is added so that the seam vanishes: the difference along it, carried inwards ever more smoothly.

    It is Poisson blending (Perez et al. 2003) with the difference as a harmonic function, approximated by pyramids as
    of Farbman et al. 2011, and limited, so that hair or a shadow across the seam does not stain the face.
    """
    if most == 0:
        return np.zeros_like(apart)
    height, width = mask.shape
    size = (_PROXY, _PROXY)
    seam = ((mask > 0.02) & (mask < 0.6)).astype(np.float32)
    weight = cv2.resize(seam, size, interpolation=cv2.INTER_AREA)
    values = cv2.resize(np.clip(apart, -2 * most, 2 * most) * seam[..., None], size, interpolation=cv2.INTER_AREA)
    levels: list[tuple[Any, Any]] = [(values, weight)]
    for _ in range(_LEVELS):
        levels.append((cv2.pyrDown(levels[-1][0]), cv2.pyrDown(levels[-1][1])))
    filled = levels[-1][0] / np.maximum(levels[-1][1], 1e-4)[..., None]
    for value, sure in reversed(levels[:-1]):
        up = cv2.pyrUp(filled, dstsize=(value.shape[1], value.shape[0]))
        share = np.clip(sure * 8, 0, 1)[..., None]
        filled = share * value / np.maximum(sure, 1e-4)[..., None] + (1 - share) * up
    filled = cv2.GaussianBlur(filled, (0, 0), 2.0)
    return np.asarray(np.clip(cv2.resize(filled, (width, height)), -most, most), np.float32)


def _detail(grey: Picture, skin: NDArray[np.bool_]) -> float:
    """How much a picture varies from pixel to pixel: median of what a small blur takes away."""
    return float(np.median(abs(grey - cv2.GaussianBlur(grey, (0, 0), 1.0))[skin])) + 1e-6


def _as_sharp(made: Picture, photo: Picture, skin: Picture, grain: np.random.Generator) -> Picture:
    """As soft as the photo by a blur; where the photo has more fine detail, its grain as noise of that strength."""
    chosen = cv2.erode(skin, np.ones((3, 3), np.uint8)) > 0
    if chosen.sum() < 64:
        return made
    wanted, grey = _detail(photo.mean(2), chosen), made.mean(2)
    found = _detail(grey, chosen)
    if found > wanted:
        tried = [sigma for sigma in _SHARPNESS if sigma]
        blurs = ((sigma, _detail(cv2.GaussianBlur(grey, (0, 0), sigma), chosen)) for sigma in tried)
        sigma = next((sigma for sigma, left in blurs if left <= 1.05 * wanted), tried[-1])
        return np.asarray(cv2.GaussianBlur(made, (0, 0), sigma), np.float32)
    missing = math.sqrt(max(0.0, wanted**2 - found**2)) / 0.5  # a blur of 1 takes three quarters of white noise
    noise = grain.standard_normal(made.shape[:2], dtype=np.float32)
    return np.asarray(made + min(missing, 0.05) * noise[..., None], np.float32)
