"""Generated people: pedestrian pictures of nobody, with known identities, drawn from a seed."""

from veilkit.synthetic.cameras import camera_jpeg_quality
from veilkit.synthetic.people.generate import generate_people
from veilkit.synthetic.people.render import render_person

__all__ = ["camera_jpeg_quality", "generate_people", "render_person"]
