"""Generated people: pedestrian pictures of nobody, with known identities, drawn from a seed."""

from veilkit.datasets.generated.cameras import camera_jpeg_quality
from veilkit.datasets.generated.people import generate_people
from veilkit.datasets.generated.render import render_person

__all__ = ["camera_jpeg_quality", "generate_people", "render_person"]
