"""The commands as a user gives them, in a process of their own."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.conftest import random_picture
from tests.experts.faces_of_nobody import drawn
from tests.methods.experts import tiny_expert_file
from veilkit.attacks import ATTACKS
from veilkit.media.writing import to_pixels
from veilkit.methods import METHODS

COMMAND = [sys.executable, "-c", "from veilkit.cli import main; main()"]


def veilkit(*words: object, cwd: Path | None = None, stdin: str = "") -> subprocess.CompletedProcess[str]:
    command = [*COMMAND, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False, input=stdin)


def test_help_names_the_verbs_without_importing_torch() -> None:
    done = veilkit("--help")
    assert done.returncode == 0
    assert "protect" in done.stdout
    assert not {name.partition(".")[0] for name in modules_after("--help")} & {"torch", "numpy", "sklearn"}


def test_pixelation_waits_for_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Image.fromarray(random_picture(0, 40, 20)).save(tmp_path / "in" / "one.png")
    words = ("protect", tmp_path / "in", tmp_path / "out", "--method", "pixelate")
    loaded = modules_after(*words, "--workers", 0)
    own = {name for name in loaded if name.partition(".")[0] == "veilkit"}
    folders = {name.split(".")[1] for name in own if "." in name}
    assert (tmp_path / "out" / "manifest.json").is_file()
    assert not folders & {"experts", "networks", "training", "attacks", "audit", "gallery", "perception", "synthetic"}
    assert not loaded & {"sklearn", "scipy", "torchmetrics", "veilkit.pipeline.video", "veilkit.methods.faces"}
    assert len(own) <= 70


def modules_after(*words: object) -> set[str]:
    """What Python has imported at the end of a command."""
    code = (
        "import sys\nfrom veilkit.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint('modules', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, check=True)
    return set(done.stdout.rpartition("modules ")[2].split())


def test_methods_are_listed_and_shown() -> None:
    listed = veilkit("methods", "list")
    assert {line.split()[0] for line in listed.stdout.splitlines()} >= {"blur", "pixelate", "patches"}
    shown = veilkit("methods", "show", "patches")
    assert '"people": 4' in shown.stdout
    assert "preset kept" in shown.stdout
    unsafe = {line.split()[0] for line in listed.stdout.splitlines() if "UNSAFE" in line}
    assert unsafe == {"mixup", "patches"}


def test_a_method_that_can_be_undone_is_warned_of(folder: Path, tmp_path: Path) -> None:
    done = veilkit("protect", folder, tmp_path / "out", "--method", "patches", "--workers", 0, "--labels", "folder")
    assert done.returncode == 0, done.stderr
    assert "the attack jigsaw undoes it" in done.stderr


def test_what_undoes_a_method_is_an_attack() -> None:
    assert {name: method.undone_by for name, method in METHODS.items() if method.undone_by in ATTACKS} == {
        name: method.undone_by for name, method in METHODS.items() if method.undone_by
    }


def test_protect_tells_what_it_did_and_where_the_key_is(folder: Path, tmp_path: Path) -> None:
    (folder / "notes.txt").write_text("not a picture")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    done = veilkit("protect", folder, tmp_path / "out", "--method", "blur", "--set", "sigma=4", "--workers", 0)
    assert done.returncode == 3, done.stderr
    assert "12 pictures protected" in done.stdout
    assert str(tmp_path / "out.private" / "key") in done.stdout
    assert "1 other files passed over" in done.stdout
    assert "1 pictures refused" in done.stderr
    assert "broken" not in done.stdout + done.stderr
    refused = next((tmp_path / "out.private").glob("*.refused.csv"))
    assert "broken.jpg" in refused.read_text()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["config"] == {"sigma": 4.0, "at_height": 256}
    assert manifest["files"] == 12


def test_protect_counts_faces_and_says_that_what_no_detector_saw_is_unchanged(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    Image.fromarray(to_pixels(drawn(1)[0][0])).save(tmp_path / "in" / "face.png")
    Image.fromarray(random_picture(0, 40, 200)).save(tmp_path / "in" / "nobody.png")
    done = veilkit("protect", tmp_path / "in", tmp_path / "out", "--method", "faceblur", "--workers", 0)
    assert done.returncode == 0, done.stderr
    assert "Faces: 1 found, 1 of them changed and 0 hidden" in done.stdout
    assert "A face that no detector saw is unchanged" in done.stdout
    (counted,) = (tmp_path / "out.private").glob("*.faces.csv")
    assert str(counted) in done.stdout
    head, face, nobody = counted.read_text().splitlines()
    assert (head, face) == ("source,found,changed,hidden,doubtful,spared", "face.png,1,1,0,0,0")
    assert nobody.startswith("nobody.png,0,0,0,")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["config"]["second"] == "auto"
    assert "doubtful" not in json.dumps(manifest)
    plain = veilkit("protect", tmp_path / "in", tmp_path / "plain", "--method", "pixelate", "--workers", 0)
    assert "Faces:" not in plain.stdout
    assert not list((tmp_path / "plain.private").glob("*.faces.csv"))


@pytest.mark.parametrize("on_doubt", ["hide", "pixelate-picture", "refuse"])
def test_what_a_picture_gets_in_which_something_may_be_a_face(on_doubt: str, tmp_path: Path) -> None:
    face = to_pixels(drawn(1)[0][0])
    dark = (face.astype(float) * 0.02).astype(np.uint8)  # there is somebody, of whom nobody can be sure
    (tmp_path / "in").mkdir()
    Image.fromarray(np.concatenate([face, dark], 1)).save(tmp_path / "in" / "two.png")
    options = ("--method", "faceblur", "--workers", 0, "--on-doubt", on_doubt)
    done = veilkit("protect", tmp_path / "in", tmp_path / "out", *options)
    if on_doubt == "refuse":
        assert done.returncode == 3, done.stderr
        assert "something in it may be a face" in done.stderr
        return
    assert done.returncode == 0, done.stderr
    assert "1 doubtful regions hidden as well" in done.stdout
    (made,) = (tmp_path / "out").glob("*.png")
    whole = np.asarray(Image.open(made))
    assert (len(np.unique(whole.reshape(-1, 3), axis=0)) <= 8 * 16) == (on_doubt == "pixelate-picture")
    other = veilkit("protect", tmp_path / "in", tmp_path / "other", "--method", "blur", "--on-doubt", on_doubt)
    assert other.returncode == 2
    assert "looks for no faces" in other.stderr


def test_protect_tells_how_many_pictures_missed_the_limit(folder: Path, tmp_path: Path) -> None:
    expert = ("--method", "pixelfade", "--set", f"expert={tiny_expert_file()}", "--set", "spread=1", "--workers", 0)
    missed = veilkit("protect", folder, tmp_path / "missed", *expert, "--set", "steps=1", "--set", "threshold=0")
    assert missed.returncode == 0, missed.stderr
    assert "12 pictures protected" in missed.stdout
    assert "12 of them missed the limit" in missed.stdout
    held = veilkit("protect", folder, tmp_path / "held", *expert, "--set", "steps=1", "--set", "threshold=1e9")
    assert held.returncode == 0, held.stderr
    assert "missed" not in held.stdout


def test_kept_names_and_seeds_are_warned_of(folder: Path, tmp_path: Path) -> None:
    words = ("--method", "noise", "--names", "keep", "--seed", 7, "--workers", 0, "--format", "jpeg")
    done = veilkit("protect", folder, tmp_path / "out", *words)
    assert done.returncode == 0
    assert done.stderr.count("Warning:") == 2
    assert (tmp_path / "out" / "person0" / "shot0.jpg").is_file()
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert (manifest["seed"], manifest["reproducible_by"], manifest["key_commitment"]) == (7, "anyone", None)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("absent", "out", "--method", "blur"), "absent is not there"),
        ((".", "out", "--method", "blur"), "must lie apart"),
        (("originals", "out", "--method", "blurr"), "did you mean 'blur'"),
        (("originals", "out", "--method", "blur", "--preset", "paper"), "unknown preset of blur 'paper'"),
        (("originals", "out", "--method", "blur", "--set", "sigma=x"), "sigma must be of type float"),
        (("originals", "out", "--method", "blur", "--seed", "1", "--key", "k"), "a key or a seed, not both"),
        (("originals", "out", "--method", "blur", "--key", "out/key"), "kept apart"),
        (("originals", "out", "--method", "patches", "--set", "people=9"), "mixes 9 different people"),
    ],
)
def test_mistakes_are_told_in_one_line(folder: Path, words: tuple[str, ...], message: str) -> None:
    done = veilkit("protect", *words, "--workers", "0", cwd=folder.parent)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupt_leaves_a_run_that_goes_on(folder: Path, tmp_path: Path) -> None:
    for copy in range(60):  # large enough that the run is still at it when the interrupt comes
        Image.fromarray(random_picture(copy, 600, 300)).save(folder / f"copy{copy}.jpg")
    words = ["protect", folder, tmp_path / "out", "--method", "noise", "--workers", "1"]
    command = [*COMMAND, *map(str, words)]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "out").glob("*.png")) and run.poll() is None:
        time.sleep(0.005)
    run.send_signal(signal.SIGINT)
    _, errors = run.communicate()
    assert run.returncode == 130
    assert "go on with the same command" in errors
    assert not (tmp_path / "out" / "manifest.json").exists()
    done = veilkit(*words)
    assert done.returncode == 0
    assert len(list((tmp_path / "out").glob("*.png"))) == 72


def test_generate_writes_people_in_the_market_layout(tmp_path: Path) -> None:
    words = ("--identities", 4, "--images", 4, "--cameras", 2, "--seed", 3, "--workers", 1)
    done = veilkit("generate", "people", tmp_path / "people", *words)
    assert done.returncode == 0, done.stderr
    counts = {p.name: len(list(p.glob("*.jpg"))) for p in (tmp_path / "people").iterdir() if p.is_dir()}
    assert counts == {"bounding_box_train": 8, "query": 4, "bounding_box_test": 4}
    again = veilkit("generate", "people", tmp_path / "people")
    assert again.returncode == 2
    assert "Error: " in again.stderr
    assert str(tmp_path / "people") in again.stderr


def test_generate_writes_faces_with_their_truth(tmp_path: Path) -> None:
    words = ("--people", 2, "--images", 1, "--size", 64, "--yaw", 10, "--seed", 3, "--workers", 1)
    done = veilkit("generate", "faces", tmp_path / "faces", *words)
    assert done.returncode == 0, done.stderr
    assert "2 pictures of 2 people" in done.stdout
    assert sorted(p.name for p in (tmp_path / "faces").glob("*/*")) == [
        "0001_000001.json",
        "0001_000001.png",
        "0002_000001.json",
        "0002_000001.png",
    ]
    other = veilkit("generate", "faces", tmp_path / "faces", "--people", 3)
    assert other.returncode == 2
    assert "unfinished set of the same numbers" in other.stderr


def test_fro_from_originals_to_a_student_by_its_three_commands(tmp_path: Path) -> None:
    for person, colour in enumerate(((200, 30, 30), (30, 200, 30), (30, 30, 200), (180, 180, 20))):
        (tmp_path / "people" / f"p{person}").mkdir(parents=True)
        for shot in range(4):
            shade = tuple(value + 5 * shot for value in colour)
            Image.new("RGB", (16, 32), shade).save(tmp_path / "people" / f"p{person}" / f"{shot}.png")
    small = ("--set", "pool.backbone=osnet-x0.25", "--set", "pool.size=32,16", "--set", "pool.epochs=1")
    words = ("fit", "fro", "people", "--out", "pool.safetensors", *small, "--set", "pool.identities=2")
    fitted = veilkit(*words, cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    words = ("people", "made", "--method", "fro", "--model", "pool.safetensors", "--set", "assembly.steps=1")
    made = veilkit("protect", *words, "--names", "keep", "--workers", "0", cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    assert len(list((tmp_path / "made").glob("*/*.png"))) == 16
    assert (tmp_path / "made" / "soft_labels.npz").exists()
    student = ("train", "student", "made", "--out", "student.safetensors", "--backbone", "osnet-x0.25",
               "--set", "size=32,16", "--set", "epochs=1", "--set", "identities=2")  # fmt: skip
    refused = veilkit(*student, "--set", "augment.erase=0.5", cwd=tmp_path)
    assert refused.returncode == 2
    assert "augment.erase would have no effect" in refused.stderr
    assert not (tmp_path / "student.safetensors").exists()
    trained = veilkit(*student, cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "A student of 16 pictures and 4 classes" in trained.stdout
    assert (tmp_path / "student.safetensors").exists()
