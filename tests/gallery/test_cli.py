from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

from veilkit.cli import app
from veilkit.gallery import read_facts


def veilkit(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def features_file(file: Path, count: int = 10, dimension: int = 16, seed: int = 0, **more: object) -> Path:
    features = np.random.default_rng(seed).standard_normal((count, dimension)).astype(np.float32)
    np.savez(
        file,
        features=features,
        records=np.array([f"{row}.jpg" for row in range(count)]),
        persons=np.array([f"person {row // 2}" for row in range(count)]),
        cameras=np.array([f"c{row % 2}" for row in range(count)]),
        times=np.arange(count) * 60,
        **more,  # type: ignore[arg-type]
    )
    return file


@pytest.fixture
def gallery(tmp_path: Path, url: str | None) -> Path:
    folder = tmp_path / "gallery"
    done = veilkit(
        "gallery", "create", folder, "--mechanism", "privunit", "--epsilon", 4, "--budget-epsilon", 8, "--per",
        "person", "--dimension", 16, *(["--url", url] if url else []),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "up to 2 vectors each" in done.output
    return folder


def test_features_are_added_searched_accounted_for_and_exported(gallery: Path, tmp_path: Path) -> None:
    source = features_file(tmp_path / "some.npz")
    added = veilkit("gallery", "add", gallery, source)
    assert added.exit_code == 0, added.output
    assert "10 vectors released and stored" in added.output
    assert "10 were there from before, and cost nothing more" in veilkit("gallery", "add", gallery, source).output
    assert "0 vectors released" in veilkit("gallery", "add", gallery).output

    key = tmp_path / "gallery.private" / "key"
    words = ["--top", 4, "--camera", "c1", "--since", "1970-01-01T00:02:00Z", "--until", 500, "--json"]
    found = json.loads(veilkit("gallery", "search", gallery, source, *words).stdout)
    assert [answer["query"] for answer in found] == [f"{row}.jpg" for row in range(10)]
    for answer in found:
        assert {hit["time"] for hit in answer["hits"]} == {f"1970-01-01T00:0{minute}:00Z" for minute in (3, 5, 7)}
        assert set(answer["hits"][0]) == {"pseudonym", "score", "camera", "time"}
    named = json.loads(veilkit("gallery", "search", gallery, source, *words, "--key", key).stdout)
    assert {hit["record"] for answer in named for hit in answer["hits"]} == {"3.jpg", "5.jpg", "7.jpg"}
    table = veilkit("gallery", "search", gallery, source, "--top", 2)
    assert table.exit_code == 0
    assert "pseudonym" in table.stdout
    assert "1.jpg" in table.stdout, "the query"
    assert ("sees the query's features" in table.stderr) == bool(read_facts(gallery).url)

    told = veilkit("gallery", "budget", gallery)
    assert "epsilon claimed 4, proved 4, spent by the worst person 8" in told.output
    assert "in the ledger 10, in the store 10: they agree" in told.output
    assert json.loads(veilkit("gallery", "budget", gallery, "--json").stdout)["agree"] is True
    assert veilkit("gallery", "export", gallery, tmp_path / "out").exit_code == 0
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert [manifest[f"epsilon_{name}"] for name in ("claimed", "proved", "spent")] == [4.0, 4.0, 8.0]


def test_errors_end_with_2_and_one_line(gallery: Path, tmp_path: Path) -> None:
    veilkit("gallery", "add", gallery, features_file(tmp_path / "some.npz"))
    other = features_file(tmp_path / "other.npz", seed=1)
    short = features_file(tmp_path / "short.npz", dimension=8)
    create = ["gallery", "create", tmp_path / "new", "--mechanism", "privunit", "--per", "record", "--dimension", 16]
    cases = [
        (["gallery", "add", tmp_path / "nowhere", other], "there is no gallery"),
        (["gallery", "add", gallery, other], "known with another content"),
        (["gallery", "add", gallery, short], "vectors of 16, but got vectors of 8"),
        (["gallery", "add", gallery, tmp_path], "takes features (.npz) only"),
        (["gallery", "search", gallery, short], "vectors of 16"),
        (["gallery", "search", gallery, other, "--since", "noon"], "expected a time"),
        (["gallery", "budget", gallery, "--key", tmp_path / "none"], "there is no key file"),
        ([*create, "--epsilon", -1], "epsilon"),
        ([*create, "--epsilon", 1, "--delta", 0.1], "pure mechanism"),
        ([*create, "--epsilon", 1, "--url", "http://127.0.0.1:9"], "is the server running"),
        ([*create, "--epsilon", 1, "--expert", "people"], "either --expert"),
        ([*create[:4], "nonsense", *create[5:], "--epsilon", 1], "unknown mechanism"),
    ]
    for words, message in cases:
        done = veilkit(*words)
        assert (done.exit_code, done.stdout) == (2, ""), words
        assert message in done.stderr, words
        assert done.stderr.splitlines()[-1].startswith("Error: "), words
        assert "Traceback" not in done.stderr
    assert "in the ledger 10, in the store 10" in veilkit("gallery", "budget", gallery).output
    assert not (tmp_path / "new" / "gallery.json").exists()


def test_epsilon_and_unit_have_no_default(tmp_path: Path) -> None:
    words = {"--mechanism": "privunit", "--epsilon": 1, "--per": "record"}
    for missing in words:
        given = [word for pair in words.items() if pair[0] != missing for word in pair]
        done = veilkit("gallery", "create", tmp_path / "new", "--dimension", 8, *given)
        assert done.exit_code == 2
        assert missing in done.stderr


def test_pictures_are_embedded_and_added_once(folder: Path, tmp_path: Path, url: str | None) -> None:
    gallery = tmp_path / "gallery"
    (folder / "person0" / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    (tmp_path / "times.csv").write_text("path,time\nperson0/shot0.jpg,2024-05-01T12:00:00Z\n")
    made = veilkit(
        "gallery", "create", gallery, "--expert", "histogram", "--mechanism", "gaussian", "--epsilon", 1, "--delta",
        1e-6, "--budget-epsilon", 2, "--per", "person", *(["--url", url] if url else []),
    )  # fmt: skip
    assert made.exit_code == 0, made.output
    words = ["gallery", "add", gallery, folder, "--times", f"csv:{tmp_path / 'times.csv'}"]
    done = veilkit(*words)
    assert done.exit_code == 3, done.output
    assert "12 vectors released and stored" in done.output
    assert "1  not a picture in one of the formats" in done.stderr
    again = veilkit(*words)
    assert "0 vectors released and stored" in again.output
    assert "12 were there from before" in again.output

    found = json.loads(
        veilkit(
            "gallery", "search", gallery, folder / "person0" / "shot0.jpg", "--until", "2025-01-01", "--json"
        ).stdout
    )
    assert [answer["query"] for answer in found] == ["shot0.jpg"]
    assert [hit["time"] for hit in found[0]["hits"]] == ["2024-05-01T12:00:00Z"]

    (folder / "person1" / "shot0.jpg").write_bytes((folder / "person2" / "shot0.jpg").read_bytes())
    changed = veilkit(*words)
    assert changed.exit_code == 3
    assert "not the picture that was released under its name" in changed.stderr
    (folder / "person1" / "shot9.jpg").write_bytes((folder / "person2" / "shot0.jpg").read_bytes())
    (folder / "person1" / "shot8.jpg").write_bytes((folder / "person3" / "shot0.jpg").read_bytes())
    past = veilkit(*words)
    assert past.exit_code == 2
    assert "past it" in past.stderr
    assert "in the ledger 12, in the store 12" in veilkit("gallery", "budget", gallery).output
    unlabelled = veilkit(*words, "--labels", "none")
    assert unlabelled.exit_code == 2
    assert "nobody is named for 15 of 15 pictures" in unlabelled.stderr
    another = veilkit(*words, "--expert", "people")
    assert another.exit_code == 2
    assert "another expert" in another.stderr


def test_books_that_do_not_agree_are_told(gallery: Path, tmp_path: Path) -> None:
    with mock.patch("veilkit.gallery.milvus.VectorStore.upsert", side_effect=KeyboardInterrupt):
        stopped = veilkit("gallery", "add", gallery, features_file(tmp_path / "some.npz"))
    assert stopped.exit_code == 130
    told = veilkit("gallery", "budget", gallery)
    assert told.exit_code == 3
    assert "they DIFFER, 10 missing, 0 unknown" in told.output
    assert "10 that an interrupted run had paid for are stored now" in veilkit("gallery", "add", gallery).output
    assert veilkit("gallery", "budget", gallery).exit_code == 0


PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "gallery.md"


def test_the_python_example_runs(tmp_path: Path) -> None:
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", PAGE.read_text(), re.S)
    assert code
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
    added, best, budget, refused = done.stdout.splitlines()
    assert added == "Added(added=6, kept=0, resumed=0)"
    assert re.fullmatch(r"[a-z2-7]{26} is (ann|bob|cleo)/\d\.jpg", best)
    assert budget == "16.0 spent, 6 paid for, 6 stored, they agree: True"
    assert "from epsilon 16 to 24" in refused


def test_the_commands_run(folder: Path, tmp_path: Path) -> None:
    shell = re.search(r"<!-- commands -->\n```sh\n(.*?)```", PAGE.read_text(), re.S)
    assert shell
    folder.rename(tmp_path / "photos")
    start = f"set -e\nveilkit() {{ '{sys.executable}' -c 'from veilkit.cli import main; main()' \"$@\"; }}\n"
    done = subprocess.run(["bash", "-c", start + shell[1]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "12 vectors released and stored" in done.stdout
    assert "they agree" in done.stdout
    assert (tmp_path / "released" / "manifest.json").is_file()
