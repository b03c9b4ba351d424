"""Audits from a TOML file: the format of docs/audit.md, its errors, and the matrix that is run."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.audit.folders import blur, changed, plain
from tests.methods.experts import tiny_expert_file
from veilkit.audit.inputs.spec import read_spec
from veilkit.audit.inputs.spec_text import spec_text
from veilkit.audit.matrix import combinations, run_matrix
from veilkit.cli import app
from veilkit.errors import CheckpointError, ConfigError, DataError, UsageError, VeilkitError
from veilkit.experts.names import file_sha256

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"
LEAST = '[[datasets]]\nname = "a"\noriginals = "o"\n'
RELEASE = '[[releases]]\nname = "r"\nprotected = "p"\n'


def written(folder: Path, text: str) -> Path:
    (folder / "audit.toml").write_text(text)
    return folder / "audit.toml"


def example() -> str:
    """The worked example of the docs."""
    found = re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.S)
    assert found is not None
    return found[1]


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    """What the docs' example names."""
    originals = plain(tmp_path / "originals")
    changed(originals, tmp_path / "by-another-tool", blur, ".jpg")
    return tmp_path


def test_a_dataset_may_have_attacks_and_a_start_of_its_own(folders: Path) -> None:
    text = (
        'attacks = ["linkage"]\n[[datasets]]\nname = "a"\noriginals = "originals"\nattacks = ["own_original"]\n'
        f'start = "{tiny_expert_file("mobilenetv2")}"\n[[releases]]\nname = "r"\nprotected = "by-another-tool"\n'
    )
    spec = read_spec(written(folders, text))
    assert spec.datasets[0].start == Path(tiny_expert_file("mobilenetv2"))
    (done,) = run_matrix(spec, folders / "out")
    assert done.result is not None
    assert {each.attack for each in done.result.attacks if each.applicable} == {"own_original"}
    with pytest.raises(UsageError, match="no attack 'ownoriginal'"):
        read_spec(written(folders, text.replace("own_original", "ownoriginal")))
    with pytest.raises(ConfigError, match="attacks is empty"):
        read_spec(written(folders, text.replace('"own_original"', "")))
    with pytest.raises(CheckpointError):
        run_matrix(read_spec(written(folders, text.replace("start = ", 'start = "missing.safetensors" #'))), folders)


def test_the_documented_example_runs_and_goes_on(folders: Path) -> None:
    file = written(folders, example())
    spec = read_spec(file)
    names = [each.name for each in combinations(spec)]
    assert names == [
        "people.blurred.small.seed0", "people.blurred.small.seed1",
        "people.pixelated.small.seed0", "people.pixelated.small.seed1",
    ]  # fmt: skip
    done = CliRunner().invoke(app, ["audit", "--spec", str(file), "--out", str(folders / "out")])
    assert done.exit_code == 0, done.output
    rows = json.loads((folders / "out" / "matrix.json").read_text())["audits"]
    assert [(row["release"], row["seed"]) for row in rows] == [
        ("blurred", 0), ("blurred", 1), ("pixelated", 0), ("pixelated", 1)]  # fmt: skip
    assert rows[0]["attacks"]["linkage"]["level"] == "L0"
    assert "not applicable" in rows[0]["attacks"]["recovery"]
    assert rows[2]["alarms"] == ["secret published"]  # a method of a matrix runs under a public seed
    cells = {file.name: file.read_bytes() for file in (folders / "out" / "cells").iterdir()}
    assert "people.pixelated.small.seed1.attack-linkage.json" in cells
    assert all((folders / "out" / row["report"]).is_file() for row in rows)
    before = (folders / "out" / "matrix.json").read_bytes()
    run_matrix(spec, folders / "out")
    assert (folders / "out" / "matrix.json").read_bytes() == before
    assert {file.name: file.read_bytes() for file in (folders / "out" / "cells").iterdir()} == cells


def test_one_hopeless_audit_does_not_stop_the_others(folders: Path) -> None:
    text = example().replace('attacks = ["linkage", "own_original"]\nseeds = [0, 1]', 'attacks = ["own_original"]')
    gone = '\n[[releases]]\nname = "gone"\nprotected = "nowhere"\n'
    locked = '\n[[releases]]\nname = "locked"\nprotected = "by-another-tool"\nkey = "no-key"\n'
    done = run_matrix(read_spec(written(folders, text + gone + locked)), folders / "out")
    assert [each.result is None for each in done] == [False, True, True, False]
    assert "not there" in done[1].why
    assert "key" in done[2].why


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("datasets = 5", "datasets: Input should be a valid tuple"),
        (LEAST, r"expected \[\[releases\]\] to audit or \[\[methods\]\] to run"),
        (LEAST + RELEASE + "kye = 1\n", r"releases\[0\].kye: Extra inputs are not permitted"),
        (LEAST + RELEASE + 'dataset = "b"\n', "there is no dataset 'b'; there are a"),
        (LEAST + LEAST + RELEASE, "a occurs twice"),
        (LEAST + LEAST.replace('"a"', '"b"') + RELEASE, "which of the datasets a, b"),
        ('budget = "soon"\n' + LEAST + RELEASE, "budget: a budget is a time"),
        ('budget = "1m"\nlearn = 5\n' + LEAST + RELEASE, "learn or budget, not both"),
        (LEAST + '[[methods]]\nname = "m"\nmethod = "blurr"\n', "there is no method 'blurr'"),
        (
            LEAST + '[[methods]]\nname = "m"\nmethod = "pixelate"\nsettings = { block = 8 }\n',
            "unknown setting 'block'",
        ),
        (LEAST + '[[methods]]\nname = "m"\nmethod = "fro"\n', "must learn before it protects"),
        (LEAST + '[[methods]]\nname = "m"\nmethod = "blur"\ndataset = "b"\n', "method m: there is no dataset 'b'"),
        (LEAST.replace('"a"', '"a/b"') + RELEASE, "letters, digits"),
        ("[[datasets", "is not TOML"),
    ],
)
def test_a_wrong_spec_says_what_is_wrong_and_where(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=told):
        read_spec(written(tmp_path, text))


def test_unknown_attacks_and_missing_files_are_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no attack 'linkige'"):
        read_spec(written(tmp_path, 'attacks = ["linkige"]\n' + LEAST + RELEASE))
    with pytest.raises(DataError, match="cannot be read"):
        read_spec(tmp_path / "nothing.toml")


def test_paths_are_taken_from_the_specs_folder(tmp_path: Path) -> None:
    experts = '[[experts]]\nname = "e"\nexpert = "own.safetensors"\njudge = "histogram"\n'
    spec = read_spec(written(tmp_path, 'start = "public.safetensors"\n' + LEAST + RELEASE + experts))
    assert spec.datasets[0].originals == tmp_path / "o"
    assert spec.releases[0].protected == tmp_path / "p"
    assert spec.start == tmp_path / "public.safetensors"
    assert 'start = "public.safetensors"' in spec_text(spec, tmp_path)
    assert read_spec(written(tmp_path, spec_text(spec, tmp_path))) == spec
    assert (spec.experts[0].expert, spec.experts[0].judge) == (str(tmp_path / "own.safetensors"), "histogram")


def test_attackers_of_all_audits_start_from_the_specs_weights(folders: Path) -> None:
    start = Path(tiny_expert_file("mobilenetv2"))
    text = example().replace('attacks = ["linkage", "own_original"]\nseeds = [0, 1]', 'attacks = ["own_original"]')
    done = run_matrix(read_spec(written(folders, f'start = "{start}"\n{text}')), folders / "out")
    given = [each.result.config["start_sha256"] for each in done if each.result is not None]
    assert given == [file_sha256(start)] * 2
    wrong = read_spec(written(folders, f'start = "missing.safetensors"\n{text}'))
    with pytest.raises(CheckpointError, match="no such model file"):
        run_matrix(wrong, folders / "other")
    assert not (folders / "other").exists()  # not even a method was run


def test_a_method_may_have_one_dataset_and_an_expert_of_its_own(tmp_path: Path) -> None:
    for name in ("a", "b"):
        plain(tmp_path / name, people=4, shots=2)
    text = "".join(f'[[datasets]]\nname = "{name}"\noriginals = "{name}"\n' for name in ("a", "b"))
    text += '[[experts]]\nexpert = "histogram"\njudge = "histogram"\n'
    text += '[[methods]]\nname = "everywhere"\nmethod = "blur"\n'
    text += f'[[methods]]\nname = "one"\nmethod = "blur"\ndataset = "b"\nexpert = "{tiny_expert_file()}"\n'
    spec = read_spec(written(tmp_path, 'attacks = ["own_original"]\n' + text))
    done = run_matrix(spec, tmp_path / "out")
    assert [each.combination.name for each in done] == [
        "a.everywhere.default.seed0", "b.everywhere.default.seed0", "b.one.default.seed0",
    ]  # fmt: skip
    experts = [each.result.expert.sha256 for each in done if each.result is not None]
    assert experts[0] == experts[1] != experts[2]
    assert done[2].result is not None
    assert done[2].result.judge.name == "histogram"


def test_a_spec_that_a_program_wrote_is_read_back_as_it_was(folders: Path) -> None:
    spec = read_spec(written(folders, example()))
    assert read_spec(written(folders, spec_text(spec, folders))) == spec
    odd = spec.model_copy(update={"methods": (spec.methods[0].model_copy(update={"settings": {"cell": object()}}),)})
    with pytest.raises(ConfigError, match="but got object"):
        spec_text(odd, folders)


def test_a_spec_goes_without_other_options_and_without_it_two_folders_are_needed(tmp_path: Path) -> None:
    file = written(tmp_path, LEAST + RELEASE)
    done = CliRunner().invoke(app, ["audit", "--spec", str(file), "--learn", "5"])
    assert done.exit_code == 2
    assert "leave out --learn" in done.stderr
    done = CliRunner().invoke(app, ["audit", "--spec", str(file), "--start", str(tmp_path / "any")])
    assert done.exit_code == 2
    assert "leave out --start" in done.stderr
    bars = tmp_path / "bars.toml"
    bars.write_text("serious = 0.02\n")
    for given in (["--thresholds", str(bars)], ["--show-originals"]):
        done = CliRunner().invoke(app, ["audit", "--spec", str(file), *given])
        assert done.exit_code == 2
        assert f"without {given[0]}" in done.stderr
        assert "write it into the spec" not in done.stderr  # it cannot be
    done = CliRunner().invoke(app, ["audit", str(tmp_path)])
    assert done.exit_code == 2
    assert "ORIGINALS and PROTECTED" in done.stderr


def crafted_specs(count: int) -> Iterator[tuple[str, bytes]]:
    """Specs that lie or are damaged, and what is wrong with each; always the same."""
    rng = random.Random(0)
    whole = example().encode()
    deep, dots = "[" * 5000 + "]" * 5000, ".".join("a" * 5000)
    values = [
        "1", "-1", "1e400", "inf", "nan", "9" * 300, "9" * 5000, "true", '""', '"a\\u0000b"', f'"{"x" * 300}"',
        f'"{"x/" * 5000}"', "[]", "[[]]", "{}", deep, "1979-05-27", '["linkage", 5]', "{ sigma = [1, 2] }",
        "{ sigma = nan }", f"{{ sigma = {'9' * 400} }}", '"../../etc/passwd"', '"blur"', f"[{'0,' * 5000}]",
    ]  # fmt: skip
    lines = whole.splitlines()
    keys = [number for number, line in enumerate(lines) if b"=" in line]
    for number in range(count):
        kind = number % 5
        if kind < 3:
            at, value = rng.choice(keys), rng.choice(values)
            changed = [*lines]
            changed[at] = lines[at].partition(b"=")[0] + b"= " + value.encode()
            yield f"{changed[at][:60]!r}", b"\n".join(changed)
        elif kind == 3:
            data = bytearray(whole)
            for _ in range(rng.randint(1, 6)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            yield "bytes", bytes(data)
        else:
            more = rng.choice([
                f"x = {deep}", f"{dots} = 1", f"[{dots}]", f"[[{dots}]]", f"x = {'{ a = ' * 3000}1{' }' * 3000}",
                "\0", "\ufeff", "x = 1\nx = 2", "[[releases]]\n" * 5000, "a.b.c.d.e.f.g.h.i.j.k = 1", "#" * 2_000_000,
                "seeds = [" + "1, " * 200_000 + "]", "= = =", '"' * 3, "[datasets]", "odd = 5",
            ])  # fmt: skip
            yield f"{more[:40]!r}", more.encode() + b"\n" + whole if rng.random() < 0.5 else whole + more.encode()


def test_crafted_specs_are_refused_in_words(tmp_path: Path) -> None:
    refused = 0
    for what, data in crafted_specs(200):
        file = tmp_path / "audit.toml"
        file.write_bytes(data)
        started, told = time.process_time(), None
        try:
            read_spec(file)
        except VeilkitError as error:
            told = str(error)
        if told is not None:
            refused += 1
            assert 10 < len(told) < 5000, what
        assert time.process_time() - started < 10, what
    assert refused > 100


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LEAST.replace('"o"', '"o\\u0000"') + RELEASE, "holds the character NUL"),
        (f"x = {'[' * 5000}{']' * 5000}\n" + LEAST + RELEASE, "nested more than 8 levels"),
        (f"x = {'[' * 50}{']' * 50}\n" + LEAST + RELEASE, "nested more than 8 levels"),
        (f"{'.'.join('a' * 5000)} = 1\n" + LEAST + RELEASE, "at most 200 dots in a line"),
        (LEAST.replace('"o"', f'"{"o" * 300}"') + RELEASE, "longer than a name or a path"),
        (f"seeds = [{'1, ' * 200_000}]\n" + LEAST + RELEASE, "at most 1000 items"),
        (f"learn = {'9' * 5000}\n" + LEAST + RELEASE, "is no audit spec"),
        ("learn = inf\n" + LEAST + RELEASE, "holds the number inf"),
        (f'budget = "{"9" * 100}h"\n' + LEAST + RELEASE, "at most a year"),
        ("#" * 2_000_000, "larger than 1,048,576 bytes"),
    ],
)
def test_specs_out_of_bounds_are_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=reason):
        read_spec(written(tmp_path, text))


def test_a_crafted_spec_is_one_line_on_the_command_line(tmp_path: Path) -> None:
    file = written(tmp_path, LEAST.replace('"o"', '"o\\u0000"') + RELEASE)
    done = CliRunner().invoke(app, ["audit", "--spec", str(file), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert done.output.startswith("Error: audit.toml is no audit spec: 'o\\x00' holds the character NUL")
