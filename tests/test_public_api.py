"""What `import veilkit` offers: listed, documented, short when printed, the same in memory as on disk."""

from __future__ import annotations

import html
import inspect
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import veilkit
from tests.audit.results import attacked, result_of
from tests.conformance.releases import ROOT
from tests.conftest import random_picture
from veilkit.audit.result import Alarm
from veilkit.audit.verdicts.levels import level_verdicts
from veilkit.audit.verdicts.verdict import Thresholds
from veilkit.display import Table, html_table
from veilkit.errors import ConfigError, DataError, UnknownNameError, UsageError
from veilkit.experts import load_expert
from veilkit.media.reading import sha256
from veilkit.methods import METHODS, Learns, Method
from veilkit.pipeline.job import item_name
from veilkit.types import Evidence, ImageBatch, Level, Reason, ReasonCode, Record, Release, Role, Score, Split

CALLED = ("attacks", "audit", "experts", "methods")


def in_a_new_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", [name for name in veilkit.__all__ if name != "__version__"])
def test_every_name_is_there_and_documented(name: str) -> None:
    thing = getattr(veilkit, name)
    assert name in dir(veilkit)
    assert inspect.getdoc(thing)
    if name not in CALLED:
        assert thing.__name__ == name
        assert thing.__module__.startswith("veilkit.")


def test_type_checkers_see_the_same_names() -> None:
    text = Path(veilkit.__file__).read_text()
    seen = {line.rpartition(" as ")[2] for line in text.splitlines() if line.startswith("    from veilkit.")}
    assert seen == set(veilkit.__all__)


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'protekt'"):
        _ = veilkit.protekt


def test_importing_the_package_imports_nothing_heavy() -> None:
    code = (
        "import sys, veilkit; print([name for name in sys.modules if name in ('torch', 'numpy', 'veilkit.methods')])"
    )
    assert in_a_new_python(code) == "[]\n"


FOLDERS_FIRST = """
import veilkit.attacks, veilkit.audit.run as run, veilkit.experts, veilkit.methods as folder
import veilkit
"""
CALLS_FIRST = """
import veilkit
called = veilkit.attacks, veilkit.audit, veilkit.experts, veilkit.methods
import veilkit.audit.run as run, veilkit.methods as folder
"""
THEN = """
import inspect
import runpy
assert veilkit.methods is folder and veilkit.audit.run is run
assert len(folder.METHODS) == len(veilkit.methods())
for called in (veilkit.attacks, veilkit.audit, veilkit.experts, veilkit.methods):
    assert callable(called) and inspect.ismodule(called), called
try:
    veilkit.audit(".", ".")
except veilkit.VeilkitError:
    print("an audit that refuses one folder for both")
"""


@pytest.mark.parametrize("code", [FOLDERS_FIRST + THEN, CALLS_FIRST + THEN], ids=["folders first", "calls first"])
def test_a_folder_is_a_function_too_whatever_was_imported_first(code: str) -> None:
    assert in_a_new_python(code) == "an audit that refuses one folder for both\n"


def test_tables_list_everything_and_answer_unknown_names() -> None:
    methods = veilkit.methods()
    assert list(methods) == list(METHODS)
    assert methods["mixup"]["undone"] == "by unmix"
    assert methods["fro"]["needs"] == "model"
    assert all(method.summary in repr(methods) for method in METHODS.values())
    assert "jigsaw" in veilkit.attacks()
    assert veilkit.experts()["people"]["supervises"] == "yes"
    assert "blurr" not in methods
    with pytest.raises(UnknownNameError, match="did you mean 'blur'"):
        _ = methods["blurr"]


def test_html_is_escaped() -> None:
    table = Table("<kind>", ("name", "<i>"), [("<b>", "&")])
    for text in (table._repr_html_(), html_table(("name", "<i>"), [("<b>", "&")], caption="<u>")):
        assert not any(tag in text for tag in ("<b>", "<i>", "<u>"))
        assert "&lt;b&gt;" in text
        assert "&amp;" in text


def test_an_audit_prints_its_verdicts() -> None:
    found = result_of(
        attacked("linkage", Level.L0, 0.8, 0.7, 0.9),
        attacked("identification", Level.L2, 0.1, 0.05, 0.15),
        alarms=(Alarm("pixels", "some <b>were</b> not changed"),),
    )
    result = replace(found, verdicts=level_verdicts(found, Thresholds()))
    shown, notebook = repr(result), result._repr_html_()
    assert len(shown) < 600
    assert "L0  broken (linkage)" in shown
    assert "ALARM: pixels" in shown
    assert len(result.verdicts) == 4
    for verdict in result.verdicts:
        assert f"{verdict.level}  {verdict.grade}" in shown
        assert html.escape(verdict.text) in notebook
    assert "&lt;b&gt;were" in notebook
    assert result.table["L0"]["worst attack"] == "linkage"


LONG = torch.rand(3, 3, 64, 32)
SCORE = Score("rank-1", 0.5, Role.PRIVACY, higher_is_better=False)


@pytest.mark.parametrize(
    "thing",
    [
        ImageBatch(LONG, ("a", "b", "c")),
        Release(images=LONG, source_index=(0, 1, 2)),
        Split("train", Path("photos"), tuple(Record(f"{index}.jpg", str(index)) for index in range(1000))),
        Evidence("linkage", Level.L0, (SCORE,), details={"many": list(range(10_000))}),
        Evidence("linkage", Level.L0, missing=(Reason(ReasonCode.NO_PAIRS, "x" * 1000),)),
        METHODS["pixelfade"].configured(settings={"steps": 3}),
        veilkit.load_method("pixelfade", steps=3),
        veilkit.load_method("blur").protect(LONG),
        load_expert("people"),
        veilkit.Recovered(Path("originals"), 12, 0, Path("log")),
    ],
    ids=lambda thing: type(thing).__name__,
)
def test_what_is_public_prints_short(thing: object) -> None:
    assert 0 < len(repr(thing)) < 160


def test_a_method_shows_what_was_set() -> None:
    method = veilkit.load_method("pixelate", cell=8)
    assert repr(method) == "load_method('pixelate', cell=8.0)"
    assert repr(method.method) == "Pixelate(cell=8.0)"
    assert method.config.cell == 8
    assert "<td>at_height</td><td>256</td><td>default</td>" in method._repr_html_()


FORMS: dict[str, Callable[[np.ndarray], object]] = {
    "array": lambda pixels: pixels,
    "arrays": list,
    "pictures": lambda pixels: [Image.fromarray(each) for each in pixels],
    "tensor": lambda pixels: torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255,
    "tensors": lambda pixels: list(torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255),
}


def as_pixels(form: str, made: object) -> np.ndarray:
    if form.startswith("tensor"):
        images = made if form == "tensor" else torch.stack(made)
        return images.mul(255).round().byte().permute(0, 2, 3, 1).numpy()
    return np.stack([np.asarray(each) for each in made])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["pixelate", "noise", "mixup"])
def test_every_form_gives_the_same_pixels(name: str, form: str) -> None:
    pixels = np.stack([random_picture(seed) for seed in range(8)])
    method = veilkit.load_method(name)
    made = method(FORMS[form](pixels), seed=3)
    assert type(made) is type(FORMS[form](pixels))
    assert np.array_equal(as_pixels(form, made), method(pixels, seed=3))
    assert not np.array_equal(as_pixels(form, made), pixels)


@pytest.mark.parametrize(
    "name", [name for name, method in METHODS.items() if not issubclass(method, Learns) and name != "avih"]
)
def test_pictures_in_memory_are_as_on_disk(name: str, folder: Path, tmp_path: Path) -> None:
    settings = {"pixelfade": {"steps": 2, "spread": 1.0}, "mixup": {"people": 4}, "ksame": {"people": 4}}.get(
        name, {}
    )
    preset = "people" if name.startswith("face") or name == "ksame" else None
    outcome = veilkit.protect(
        folder, tmp_path / "out", name, preset=preset, settings=settings, seed=3, names="kept", image_format="png"
    )
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    paths = [str(path.relative_to(folder)) for path in files]
    assert repr(outcome) == f"Outcome(12 pictures in {str(tmp_path / 'out')!r})"
    assert "<td>pictures</td><td>12</td>" in outcome._repr_html_()
    made = veilkit.load_method(name, preset=preset, **settings)(
        [Image.open(file) for file in files],
        seed=3,
        items=[item_name(path, sha256(file.read_bytes())) for path, file in zip(paths, files, strict=True)],
        identities=[Path(path).parent.name for path in paths],
    )
    for path, image in zip(paths, made, strict=True):
        released = np.asarray(Image.open((tmp_path / "out" / path).with_suffix(".png")))
        assert np.array_equal(np.asarray(image), released), path


def test_a_key_file_and_its_key_give_the_same_and_another_key_does_not(tmp_path: Path) -> None:
    method, picture = veilkit.load_method("noise"), random_picture(0)
    made = method(picture, key=tmp_path / "key")
    assert np.array_equal(made, method(picture, key=str(tmp_path / "key")))
    assert not np.array_equal(made, method(picture, key=tmp_path / "other"))
    assert np.array_equal(method(picture, key=veilkit.Key.from_seed(3)), method(picture, seed=3))


def test_neither_order_nor_batches_change_a_result() -> None:
    method, pixels = veilkit.load_method("noise"), np.stack([random_picture(seed) for seed in range(4)])
    together = method(pixels, seed=0)
    assert np.array_equal(method(pixels[::-1], seed=0)[::-1], together)
    assert all(np.array_equal(method(one, seed=0), other) for one, other in zip(pixels, together, strict=True))


def test_two_pictures_that_differ_never_share_noise() -> None:
    method = veilkit.load_method("noise", sigma=0.1)
    grey = torch.full((2, 3, 16, 8), 0.5)
    grey[1] += 2 / 255
    first, second = method(grey, seed=0) - grey
    assert not torch.allclose(first, second, atol=0.01)


def test_pictures_of_several_sizes_come_back_in_their_places() -> None:
    pictures = [random_picture(seed, 20 + 4 * (seed % 3), 12) for seed in range(7)]
    made = veilkit.load_method("pixelate")(pictures)
    assert [each.shape for each in made] == [each.shape for each in pictures]
    assert all(
        np.array_equal(veilkit.load_method("pixelate")(one), other) for one, other in zip(pictures, made, strict=True)
    )


def test_nothing_gives_nothing() -> None:
    method = veilkit.load_method("blur")
    assert method([]) == []
    assert method(np.zeros((0, 8, 4, 3), np.uint8)).shape == (0, 8, 4, 3)
    assert method(torch.zeros(0, 3, 8, 4)).shape == (0, 3, 8, 4)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (torch.zeros(2, 1, 8, 4), "but got a tensor"),
        (torch.zeros(3, 8, 4, dtype=torch.uint8), "but got a tensor"),
        (torch.full((3, 8, 4), 128.0), "undo the normalisation"),
        (torch.full((3, 8, 4), float("nan")), "undo the normalisation"),
        (np.zeros((8, 4, 3)), "but got an array of float64"),
        (np.zeros((8, 4), np.uint8), "but got an array"),
        (np.zeros((0, 4, 3), np.uint8), "4x0 pixels"),
        ("photos", "but got str"),
        ([np.zeros((2, 8, 4, 3), np.uint8)], "list of single pictures"),
    ],
)
def test_other_forms_are_refused(wrong: object, told: str) -> None:
    with pytest.raises(DataError, match=told):
        veilkit.load_method("blur")(wrong)


def test_what_is_missing_or_too_much_is_told() -> None:
    picture, noise = random_picture(0), veilkit.load_method("noise")
    with pytest.raises(UsageError, match="give a key file"):
        noise(picture)
    with pytest.raises(UsageError, match="not both"):
        noise(picture, seed=1, key="key")
    with pytest.raises(DataError, match="one item name per picture, but got 2 for 1"):
        noise(picture, seed=1, items=["a", "b"])
    with pytest.raises(UsageError, match="must learn"):
        veilkit.load_method("privacyreid")
    with pytest.raises(UsageError, match="takes no model"):
        veilkit.load_method("blur", model="model.safetensors")
    with pytest.raises(UsageError, match="not guided by an expert"):
        veilkit.load_method("blur", expert=load_expert("people"))
    with pytest.raises(ConfigError, match="did you mean 'sigma'"):
        veilkit.load_method("blur", sgma=3)
    with pytest.raises(UnknownNameError, match="did you mean 'pixelate'"):
        veilkit.load_method("pixelat")
    with pytest.raises(UsageError, match="configure your own"):
        veilkit.load_method(METHODS["blur"](), sigma=3)
    with pytest.raises(UsageError, match="call it with them"):
        noise.synthesise({"ann": 2}, seed=0)


def test_an_expert_by_name_or_brought_guides_alike() -> None:
    picture = random_picture(0, 32, 16)
    quick = {"steps": 2, "spread": 1.0, "batch": 2}
    named = veilkit.load_method("pixelfade", expert="people", **quick).protect(picture, seed=0)
    brought = veilkit.load_method("pixelfade", expert=load_expert("people"), **quick).protect(picture, seed=0)
    assert np.array_equal(named.images, brought.images)
    assert named.reports[0].details
    with pytest.raises(UnknownNameError, match="unknown expert"):
        veilkit.load_method("pixelfade", expert="nobody", **quick)(picture, seed=0)


def test_a_fitted_method_and_a_synthesiser() -> None:
    models = ROOT / "models"
    method = veilkit.load_method("privacyreid", model=models / "cuhk03_privacyreid.safetensors")
    picture = random_picture(0)
    assert method(picture, seed=0).shape == picture.shape
    fro = veilkit.load_method("fro", model=models / "cuhk03_fro.safetensors", assembly={"steps": 2})
    with pytest.raises(UsageError, match="call synthesise"):
        fro(picture, seed=0)
    known = fro.method.classes[:2]
    made = fro.synthesise({known[0]: 2, known[1]: 1}, seed=0)
    assert sorted(made.people) == sorted([known[0], known[0], known[1]])
    assert [image.shape[2] for image in made.images] == [3, 3, 3]


def test_a_method_of_ones_own() -> None:
    class Black(Method[None]):
        """Nothing is left."""

        name = "black"
        summary = "nothing is left"
        default = METHODS["blur"].default

        def protect(self, batch: ImageBatch, *, rng: object) -> Release:
            return Release(images=torch.zeros_like(batch.images), source_index=tuple(range(len(batch))))

    assert not veilkit.load_method(Black())(random_picture(0)).any()


def test_the_table_of_modules_is_right() -> None:
    for name, (module, function) in veilkit._CALLED.items():
        assert inspect.signature(getattr(veilkit, name)) == inspect.signature(
            getattr(import_module(module), function)
        )


def test_the_api_page_is_up_to_date_and_complete() -> None:
    script = runpy.run_path(str(ROOT / "docs" / "write_api.py"))
    named = {name for names in script["SECTIONS"].values() for name in names}
    assert named | set(script["LEFT_OUT"]) == set(veilkit.__all__)
    page = script["PAGE"].read_text()
    assert page == script["render"](), "run: python docs/write_api.py"
    assert "/root" not in page
    assert all(f"### veilkit.{name}\n" in page for name in named)
