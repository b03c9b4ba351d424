"""The page's interface: what it shows and starts, as REST under one token; OpenAPI at /api/openapi.json."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote_to_bytes

from fastapi import Body, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse, Response, StreamingResponse

from veilkit.errors import DataError, UsageError, VeilkitError
from veilkit.version import __version__
from veilkit.web import reviewing
from veilkit.web.drops import Drops, FullError
from veilkit.web.helpers import Helpers
from veilkit.web.jobs import ENDED, Job, Jobs
from veilkit.web.places import listing
from veilkit.web.reports import growth, page_of
from veilkit.web.roots import Roots
from veilkit.web.session import Session
from veilkit.web.verbs import VERBS, command, shown

_TYPES = {".js": "text/javascript", ".css": "text/css", ".json": "application/json", ".html": "text/html"}
_SHOWN = 96  # pictures of previews that are held
_SIDES = (64, 2_400)
_TICK = 0.4  # seconds between two looks at the jobs


@dataclass(frozen=True, slots=True)
class Parts:
    """What a server consists of."""

    roots: Roots
    session: Session
    jobs: Jobs
    drops: Drops
    look: Helpers
    work: Helpers


class Plain(JSONResponse):
    """JSON in ASCII: names of files may hold bytes that are not text."""

    def render(self, content: Any) -> bytes:
        """The bytes that are sent."""
        return json.dumps(content, separators=(",", ":")).encode("ascii")


class Wanted(BaseModel):
    """A command to start: its verb, and its options by their names."""

    model_config = ConfigDict(extra="forbid")

    verb: str
    options: dict[str, Any] = Field(default_factory=dict)


class Previewed(BaseModel):
    """A picture, and the method that is tried on it."""

    model_config = ConfigDict(extra="forbid")

    picture: str
    method: Annotated[str, Field(max_length=40)]
    preset: Annotated[str | None, Field(max_length=40)] = None
    settings: dict[Annotated[str, Field(max_length=60)], str | float | int | bool] = Field(default_factory=dict)
    side: Annotated[int, Field(ge=64, le=2_400)] = 900


class Reviewed(BaseModel):
    """Decisions on pictures of a release. apply: protect again what has changed."""

    model_config = ConfigDict(extra="forbid")

    release: str
    decisions: Annotated[list[reviewing.Decision], Field(min_length=1, max_length=5_000)]


def make_app(parts: Parts) -> FastAPI:
    """The application, behind nothing yet: `Guard` says who may ask."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        used = frozenset(each.name for each in parts.drops.folder.iterdir() if parts.jobs.waits_for(each))
        parts.drops.wipe_all(used)
        parts.jobs.start()
        warming = asyncio.create_task(_warmed(parts))
        yield
        warming.cancel()
        await parts.jobs.close()
        for helper in (parts.look, parts.work):
            await helper.close()
        parts.drops.wipe_all(
            frozenset(each.name for each in parts.drops.folder.iterdir() if parts.jobs.waits_for(each))
        )

    app = FastAPI(
        title="veilkit", version=__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        openapi_url="/api/openapi.json", default_response_class=Plain,
        description="Protect, review and audit pictures of people on this machine. Send the token of `veilkit serve "
        "--token FILE` as `Authorization: Bearer ...`. A place is written 0/folder/name.",
    )  # fmt: skip

    @app.exception_handler(VeilkitError)
    async def refused(request: Request, error: VeilkitError) -> Response:
        return Plain(
            {"error": str(error), "kind": type(error).__name__}, 507 if isinstance(error, FullError) else 400
        )

    @app.exception_handler(RequestValidationError)
    async def malformed(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Plain({"error": f"the request is not as expected: {where}: {first['msg']}"[:500]}, 422)

    _add_files(app, parts)
    _add_jobs(app, parts)
    _add_reviews(app, parts)
    return app


async def _warmed(parts: Parts) -> None:
    """Let the helper import what it takes while the page is looked at."""
    await asyncio.sleep(0.5)
    try:
        await parts.work.warm()
    except VeilkitError:
        return  # the first preview will say what is wrong


def _add_files(app: FastAPI, parts: Parts) -> None:
    """The page itself, folders, pictures and drops."""
    static = {each.name: each.read_bytes() for each in (resources.files("veilkit.web") / "static").iterdir()}
    pictures: OrderedDict[str, bytes] = OrderedDict()

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        text = static["index.html"].decode().replace("{{ form }}", parts.session.form)
        return Response(text, media_type="text/html")

    @app.get("/static/{name}", include_in_schema=False)
    async def file(name: str) -> Response:
        if name not in static or name.endswith(".html"):
            return Plain({"error": "there is no such file"}, 404)
        return Response(static[name], media_type=_TYPES.get(Path(name).suffix, "application/octet-stream"))

    @app.get("/api/about")
    async def about() -> Response:
        """Version, folders and what can be started."""
        folders = [{"place": str(number), "name": each.name or str(each), "path": str(each)}
                   for number, each in enumerate(parts.roots.folders)]  # fmt: skip
        verbs = {
            name: [
                {"name": each.name, "sort": each.sort, "required": each.required, "many": each.many,
                 "choices": each.choices, "help": each.help, "default": _json(each.default)}
                for each in verb.fields
            ]
            for name, verb in VERBS.items()
        }  # fmt: skip
        return Plain({"veilkit": __version__, "folders": folders, "verbs": verbs})

    @app.get("/api/folder")
    async def folder(request: Request, place: str = "0") -> Response:
        """What lies in a folder."""
        return Plain(await run_in_threadpool(listing, parts.roots, _place(request)))

    @app.get("/api/picture")
    async def picture(request: Request, place: str, side: int = 900) -> Response:
        """A picture as a JPEG, decoded and written anew."""
        where = parts.roots.place(_place(request))
        _, data = await parts.look.ask(
            "shrink", root=str(where.root), parts=where.parts, side=min(max(side, _SIDES[0]), _SIDES[1])
        )
        return Response(data, media_type="image/jpeg")

    @app.post("/api/preview")
    async def preview(wanted: Previewed) -> Response:
        """What a method makes of one picture; `after` is the address of the result."""
        where = parts.roots.place(wanted.picture)
        for value in wanted.settings.values():
            if isinstance(value, str) and ("/" in value or "\\" in value or "." in value[:1]):
                raise UsageError("previews take no files")
        facts, data = await parts.work.ask(
            "preview", root=str(where.root), parts=where.parts, method=wanted.method, preset=wanted.preset,
            settings=wanted.settings, side=wanted.side,
        )  # fmt: skip
        name = secrets.token_hex(12)
        pictures[name] = data
        while len(pictures) > _SHOWN:
            pictures.popitem(last=False)
        return Plain({**facts, "after": f"/api/shown/{name}"})

    @app.get("/api/shown/{name}")
    async def shown_picture(name: str) -> Response:
        """The result of a preview."""
        if name not in pictures:
            raise DataError("this preview is gone: make it again")
        return Response(pictures[name], media_type="image/jpeg")

    @app.post("/api/drops")
    async def drop() -> Response:
        """A private folder for pictures that are dropped; its place. It is wiped when the server ends."""
        return Plain({"place": parts.drops.make()})

    @app.post("/api/drops/{name}")
    async def upload(name: str, request: Request, file: str) -> Response:
        """Put one file into a drop: its bytes are the body."""
        length = request.headers.get("content-length")
        taken = await parts.drops.take(name, file, int(length) if length else None, request.stream())
        return Plain({"name": taken, "place": f"{name}/{taken}"})

    @app.delete("/api/drops/{name}")
    async def wipe(name: str) -> Response:
        """Wipe a drop."""
        if parts.jobs.waits_for(parts.drops.find(name)):
            raise UsageError("a job needs these pictures: cancel it first")
        await run_in_threadpool(parts.drops.wipe, name)
        return Plain({})


def _add_jobs(app: FastAPI, parts: Parts) -> None:
    """What is started, and how far it is."""
    jobs = parts.jobs

    def told(job: Job, *, whole: bool = False) -> dict[str, Any]:
        return {**jobs.told(job, whole=whole), "command": shown(job.words)}

    @app.get("/api/jobs")
    async def everything() -> Response:
        """All jobs, the newest first."""
        return Plain([told(job) for job in reversed(jobs.jobs.values())])

    @app.post("/api/jobs")
    async def start(wanted: Wanted) -> Response:
        """Queue a command."""
        verb, words = await run_in_threadpool(command, wanted.verb, wanted.options, parts.roots)
        job = jobs.add(verb.name, words, list(verb.fixed), wanted.options, again=verb.again, quick=verb.quick,
                       as_json=verb.as_json)  # fmt: skip
        return Plain(told(job), 201)

    @app.post("/api/command")
    async def as_typed(wanted: Wanted) -> Response:
        """The command that would do the same, or null and what it lacks; nothing is started."""
        verb = VERBS[wanted.verb]
        try:
            return Plain({"command": shown(await run_in_threadpool(verb.words, wanted.options, parts.roots))})
        except VeilkitError as error:
            return Plain({"command": None, "why": str(error)})

    @app.get("/api/jobs/{name}")
    async def one(name: str) -> Response:
        """A job with its output."""
        return Plain(told(jobs[name], whole=True))

    @app.post("/api/jobs/{name}/cancel")
    async def cancel(name: str) -> Response:
        """End a job; what is done stays."""
        return Plain(told(jobs.cancel(name)))

    @app.post("/api/jobs/{name}/resume")
    async def resume(name: str) -> Response:
        """Run a job again, which goes on where it was."""
        return Plain(told(jobs.resume(name)))

    @app.delete("/api/jobs/{name}")
    async def forget(name: str) -> Response:
        """Take a job that has ended off the list."""
        jobs.forget(name)
        return Plain({})

    @app.get("/api/jobs/{name}/growth")
    async def grown(name: str) -> Response:
        """What an audit has found so far, attack by attack."""
        return Plain(await run_in_threadpool(growth, jobs[name].words))

    @app.get("/api/events")
    async def events() -> Response:
        """All jobs whenever something changes, as server-sent events."""

        async def stream() -> AsyncIterator[str]:
            before = ""
            quiet = 0.0
            while not jobs.ending:
                now = json.dumps([told(job) for job in reversed(jobs.jobs.values()) if _recent(job, jobs)])
                if now != before:
                    before, quiet = now, 0.0
                    yield f"data: {now}\n\n"
                elif quiet > 10:
                    quiet = 0.0
                    yield ": still here\n\n"
                await asyncio.sleep(_TICK)
                quiet += _TICK

        return StreamingResponse(stream(), media_type="text/event-stream")


def _add_reviews(app: FastAPI, parts: Parts) -> None:
    """Reviews of releases, and reports."""

    async def found(release: str) -> dict[str, Any]:
        facts, _ = await parts.work.ask("review", release=str(parts.roots.existing(release, folder=True)))
        return facts

    @app.get("/api/review")
    async def review(request: Request, release: str) -> Response:
        """The pictures of a release, doubtful ones first, with what was found in them and decided so far."""
        place = _place(request, "release")
        facts = await found(place)
        seen = reviewing.decided(Path(facts["ledger"]))
        for each in facts["pictures"]:
            each["reviewed"] = (each["path"], each["made"]) in seen
            for side in ("before", "after"):
                each[side] = parts.roots.text(Path(each[side]))
        job = _made_by(parts, parts.roots.existing(place, folder=True))
        return Plain(
            {**{name: facts[name] for name in ("method", "count", "pictures")}, "can_apply": job is not None}
        )

    @app.post("/api/review")
    async def decide(wanted: Annotated[Reviewed, Body()]) -> Response:
        """Note decisions, and protect anew what they change: the job, if any."""
        release = parts.roots.existing(wanted.release, folder=True)
        facts = await found(wanted.release)
        known = {each["path"]: each for each in facts["pictures"]}
        ledger = Path(facts["ledger"])
        if parts.roots.text(ledger) is None:
            raise UsageError("the private folder of this release is not below the server's folders")
        earlier = _made_by(parts, release)
        changes = any(each.boxes is not None for each in wanted.decisions)
        if changes and earlier is None:
            raise UsageError("this release was not made by this page: save the boxes by the command's review page")
        if changes and any(job.state not in ENDED and str(release) in job.words for job in parts.jobs.jobs.values()):
            raise UsageError("this release is being written: wait until that job has ended")
        file = reviewing.write_boxes(ledger, wanted.decisions, known)
        reviewing.note(ledger, wanted.decisions, file)
        if file is None or earlier is None:
            return Plain({"job": None})
        words = [word for word in earlier.words if not word.startswith("--boxes=")] + [f"--boxes={file}"]
        job = parts.jobs.add("protect", words, earlier.fixed, earlier.options, again=True, quick=False, as_json=False)
        return Plain({"job": job.id, "command": shown(words)})

    @app.get("/api/report")
    async def report(request: Request, place: str) -> Response:
        """The report of an audit, of a comparison, or the page of a study: without scripts, but for a study's own."""
        return await run_in_threadpool(page_of, parts.roots, _place(request))


def _made_by(parts: Parts, release: Path) -> Job | None:
    """The last job of this page that wrote a release."""
    return next(
        (job for job in reversed(parts.jobs.jobs.values()) if job.verb == "protect" and str(release) in job.words),
        None,
    )


def _recent(job: Job, jobs: Jobs) -> bool:
    """Whether a job is among those that are shown as they change."""
    return job.state not in ENDED or job.id in list(jobs.jobs)[-30:]


def _place(request: Request, name: str = "place") -> str:
    """A place in an address, whose bytes need not be text."""
    for part in request.scope["query_string"].split(b"&"):
        key, _, value = part.partition(b"=")
        if key == name.encode():
            return unquote_to_bytes(value.replace(b"+", b" ")).decode("utf-8", "surrogateescape")
    return "0"


def _json(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool | None) else str(value)
