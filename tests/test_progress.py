"""The reporter's plain lines, with a clock of our own."""

import io

from veilkit.progress import Progress


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def lines(total, moves, *, done=0, every=10.0):
    clock, stream = Clock(), io.StringIO()
    with Progress(total, "work", done=done, stream=stream, every=every, clock=clock) as progress:
        for seconds, steps, note in moves:
            clock.now += seconds
            progress.advance(steps, note)
    return stream.getvalue().splitlines()


def test_lines_come_at_intervals_and_at_the_end():
    assert lines(10, [(4, 1, "")] * 10) == [
        "work: 3/10 (30 %), 4.0 s each, 0:28 left",
        "work: 6/10 (60 %), 4.0 s each, 0:16 left",
        "work: 9/10 (90 %), 4.0 s each, 0:04 left",
        "work: 10/10 (100 %), 4.0 s each",
    ]


def test_work_done_before_does_not_spoil_the_rate():
    assert lines(100, [(10, 20, "")], done=60) == ["work: 80/100 (80 %), 2.0/s, 0:10 left"]


def test_work_that_is_found_done_does_not_spoil_the_rate():
    clock, stream = Clock(), io.StringIO()
    with Progress(100, "work", stream=stream, clock=clock) as progress:
        clock.now = 1
        progress.advance(60, kept=60)
        clock.now = 10
        progress.advance(20)
    assert stream.getvalue().splitlines() == ["work: 80/100 (80 %), 2.0/s, 0:10 left"]


def test_last_note_stays():
    assert lines(4, [(10, 1, "loss 3"), (10, 1, "")])[1].endswith("left, loss 3")


def test_nothing_to_do_is_complete():
    assert lines(0, []) == ["work: 0/0 (100 %)"]


def test_said_lines_stand_alone():
    stream = io.StringIO()
    with Progress(1, "work", stream=stream, clock=Clock()) as progress:
        progress.say("hello [bold]")
        progress.advance()
    assert stream.getvalue().splitlines()[0] == "hello [bold]"


def test_terminal_gets_a_bar():
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    stream = Terminal()
    with Progress(3, "work", stream=stream) as progress:
        progress.advance(3, "note [x]")
        progress.say("a line")
    assert "3/3" in stream.getvalue()
    assert "a line" in stream.getvalue()
