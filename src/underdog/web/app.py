"""The application: which address is which page, and what is answered where something is wrong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from underdog.errors import StoreError, UnderdogError, nearest
from underdog.verbs.serving import Kept, NotFoundError, Reader
from underdog.web import comparing, openapi, pages
from underdog.web.access import Access, Guard
from underdog.web.addresses import TWIN, address, is_twin
from underdog.web.asking import Asked
from underdog.web.live import Live
from underdog.web.pages import Page, Site
from underdog.web.rendering import files, html, page, twin

LARGEST_FORM = 65536  # bytes
PAGES = 32  # that do not change are kept as they were sent
NAVIGATION = {
    "/": "Overview",
    "/live": "Live",
    "/studies": "Studies",
    "/decisions": "Decisions",
    "/trials": "Trials",
    "/catalog": "Catalog",
    "/compare": "Compare",
}
# path -> page; a path of one thing takes its name
LISTS: dict[str, Page] = {
    "/live": pages.live,
    "/studies": pages.studies,
    "/decisions": pages.decisions,
    "/trials": pages.trials,
    "/catalog": pages.catalog,
    "/compare": comparing.compare,
}
THINGS: dict[str, Page] = {
    "/studies": pages.study,
    "/decisions": pages.decision,
    "/trials": pages.trial,
    "/workloads": pages.workload,
}
_Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Service:
    """What the requests of one server share."""

    site: Site
    access: Access
    live: Live
    kept: Kept = field(default_factory=lambda: Kept(PAGES))


def application(reader: Reader, access: Access) -> Guard:
    """The pages about the store of a reader, for those whom ``access`` lets in."""
    service = Service(Site(reader), access, Live(reader))
    handlers = {404: _missing, 405: _method, Exception: _failed}
    app = Starlette(routes=_routes(), exception_handlers=handlers)
    app.state.service = service
    # around all of it: what is answered where something fails has the headers too
    return Guard(app, access, service.live.end)


class _Name(Convertor[str]):
    """Any text at the end of a path; that of Starlette ends at the end of a line."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("name", _Name())


def _routes() -> list[Route]:
    def get(path: str, made: Page) -> Route:
        return Route(path, _page(made), methods=["GET"])

    own = [
        Route("/openapi.json", _openapi, methods=["GET"]),
        _stream("/live/values", _values),
        _stream("/live/page", _live_page),
        Route("/static/{name}", _static, methods=["GET"]),
        Route("/decisions/{name:name}/again", _again, methods=["POST"]),
    ]
    lists = [get("/", pages.overview), get(f"/index{TWIN}", pages.overview)]
    for path, made in LISTS.items():
        lists += [get(path, made), get(f"{path}{TWIN}", made)]
    things = [get(f"{path}/{{name:name}}", made) for path, made in THINGS.items()]
    return [*own, *lists, *things]


def _page(made: Page) -> _Endpoint:
    async def endpoint(request: Request) -> Response:
        # in a thread: a store may be slow, and the others are not to wait for it
        return await run_in_threadpool(_answered, request, made)

    return endpoint


def _answered(request: Request, made: Page) -> Response:
    service = _service(request)
    try:
        asked = Asked.of(request)
        answer = made(service.site, asked)
    except UnderdogError as error:
        return _error(request, error.message, error.hint, _status(error))
    if is_twin(request.scope):
        return twin(answer.data, answer.status)

    def filled() -> bytes:
        return html(
            answer.template,
            view=answer.data,
            title=answer.title,
            charts=answer.charts(),
            **_frame(request),
            asked=asked,
            twin=asked.address(twin=True),
            **answer.more,
        )

    text = filled() if answer.lasting is None else service.kept.get(answer.lasting, filled)
    # who is typing a condition has not finished it: that is no failure of the page
    return page(text, 200 if "hx-request" in request.headers else answer.status)


def _status(error: UnderdogError) -> int:
    if isinstance(error, NotFoundError):
        return 404
    return 503 if isinstance(error, StoreError) else 400


def _frame(request: Request) -> dict[str, Any]:
    """What every page needs."""
    service, path = _service(request), request.url.path
    at = next((p for p in NAVIGATION if p != "/" and f"{path}/".startswith(f"{p}/")), None)
    return {
        "navigation": NAVIGATION,
        "at": path if path == "/" else at,
        "allow_run": service.access.allow_run,
        "form_key": service.access.form_key,
    }


def _error(request: Request, message: str, hint: str | None, status: int) -> Response:
    if is_twin(request.scope):
        return twin({"error": {"message": message, "hint": hint}}, status)
    values = {"title": "Not done", "message": message, "hint": hint, "twin": None}
    return page(html("error.html", **values, **_frame(request)), status)


async def _missing(request: Request, _: Exception) -> Response:
    path = request.url.path
    near = nearest(path.split("/")[1].removesuffix(TWIN), [p.strip("/") for p in LISTS])
    hint = f"Did you mean '/{near}'?" if near else "Begin at '/'."
    return _error(request, f"There is no page '{path[:200]}'.", hint, 404)


async def _method(request: Request, _: Exception) -> Response:
    return _error(request, f"This page takes no {request.method}.", None, 405)


async def _failed(request: Request, _: Exception) -> Response:
    return _error(request, "This page could not be made: a fault of underdog's.", None, 500)


async def _again(request: Request) -> Response:
    service = _service(request)
    if not service.access.allow_run:
        hint = "Start the page with it to allow that: underdog serve --allow-run"
        return _error(request, "This page only looks: it was not started to run.", hint, 403)
    length = request.headers.get("content-length", "")
    if not length.isdigit() or int(length) > LARGEST_FORM:
        return _error(request, "This form is none of this page's.", None, 413)
    form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
    if not service.access.is_form_key(form.get("key")):
        hint = "Load the page again, then press the button again."
        return _error(request, "This form is not of this page, or of an earlier one.", hint, 403)
    asked = Asked.of(request)
    try:
        made = await run_in_threadpool(service.site.reader.again, asked.name)
    except UnderdogError as error:
        return _error(request, error.message, error.hint, _status(error))
    return RedirectResponse(address("decisions", made), 303)


async def _values(request: Request) -> Response:
    return _service(request).live.values()


async def _live_page(request: Request) -> Response:
    return _service(request).live.page()


def _stream(path: str, endpoint: _Endpoint) -> Route:
    """A stream has no end, so it cannot be asked for its head alone."""
    made = Route(path, endpoint, methods=["GET"])
    made.methods = {"GET"}
    return made


async def _openapi(request: Request) -> Response:
    return twin(openapi.description())


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    content = (await run_in_threadpool(files)).get(name)
    if content is None:
        return await _missing(request, Exception())
    kinds = {"css": "text/css", "js": "text/javascript"}
    lasting = {"cache-control": "private, max-age=31536000, immutable"}
    kind = kinds.get(name.rpartition(".")[2], "text/plain")
    return Response(content, 200, lasting, media_type=kind)


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service
