"""What the twins in JSON take and give, as OpenAPI describes it."""

from __future__ import annotations

import functools
from typing import Any

import msgspec

from underdog import __version__
from underdog.core.columns import OFFER_COLUMNS
from underdog.core.views.lines import DecisionLine, StudyLine, TrialLine, WorkloadLine
from underdog.core.views.records import (
    DecisionView,
    HistoryView,
    LedgerLine,
    StudyView,
    TrialView,
)
from underdog.verbs.serving import Now
from underdog.web.asking import LAST, MOST, STATUSES
from underdog.web.comparing import Row

_RECORDS = (
    *(DecisionLine, StudyLine, TrialLine, WorkloadLine),
    *(DecisionView, HistoryView, LedgerLine, StudyView, TrialView, Now, Row),
)
_TEXT: dict[str, Any] = {"type": "string"}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_KINDS = {"text": "string", "number": "number", "flag": "boolean", "list": "string"}


@functools.cache
def description() -> dict[str, Any]:
    """The document at ``/openapi.json``."""
    _, schemas = msgspec.json.schema_components(
        _RECORDS, ref_template="#/components/schemas/{name}"
    )
    schemas["Error"] = _object(
        {"error": _object({"message": _TEXT, "hint": {"type": ["string", "null"]}})}
    )
    schemas["Offer"] = _object(
        {column.name: {"type": [_KINDS[column.kind], "null"]} for column in OFFER_COLUMNS}
    )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "underdog serve",
            "version": __version__,
            "description": "The twin in JSON of every page: studies, decisions, trials, the "
            "catalog and what runs. None is unknown, never 0.",
        },
        "paths": _paths(),
        "components": {"schemas": schemas},
    }


def _paths() -> dict[str, Any]:
    part = [_query("page", {"type": "integer", "minimum": 1, "maximum": LAST}),
            _query("size", {"type": "integer", "minimum": 1, "maximum": MOST})]  # fmt: skip
    counts = dict.fromkeys(("total", "page", "pages", "size"), _COUNT)
    workload, study = _query("workload", _TEXT), _query("study", _TEXT)
    status = _query("status", {"enum": list(STATUSES)})
    whole = _query("whole", {"enum": ["0", "1"]})
    ledger = {"decision": _TEXT, "whole": {"type": "boolean"}, "verdicts": _list(_TEXT)}
    history = {"history": _ref("HistoryView"), "points": _COUNT, "trials_total": _COUNT}
    sides = {side: {"type": ["object", "null"]} for side in ("a", "b")}
    catalog = {"where": {"type": ["string", "null"]}, "sort": _TEXT, "catalog": {"type": "object"}}
    return {
        "/index.json": _get("What runs now, and the latest of each kind", _object({
            "running": _list({"type": "object"}), "studies": _list(_ref("StudyLine")),
            "decisions": _list(_ref("DecisionLine")), "workloads": _list(_ref("WorkloadLine")),
            "trials": _COUNT})),
        "/live.json": _get("What runs now", _ref("Now")),
        "/studies.json": _get("The studies, the newest first", _object(
            {"studies": _list(_ref("StudyLine")), **counts}), part),
        "/studies/{id}.json": _get("One study", _ref("StudyView"), [_id()]),
        "/decisions.json": _get("The decisions, the newest first", _object(
            {"decisions": _list(_ref("DecisionLine")), "page": _COUNT, "size": _COUNT,
             "more": {"type": "boolean"}}), [workload, *part]),
        "/decisions/{id}.json": _get("One decision, its ledger apart", _ref("DecisionView"),
                                     [_id(), whole]),
        "/decisions/{id}/ledger.json": _get("Why every candidate is where it is", _object(
            {**ledger, "lines": _list(_ref("LedgerLine")), **counts}),
            [_id(), _query("find", _TEXT), _query("verdict", _TEXT), *part]),
        "/trials.json": _get("The trials that match, the newest first", _object(
            {"trials": _list(_ref("TrialLine")), **counts}), [workload, status, study, *part]),
        "/trials/{id}.json": _get("One trial", _ref("TrialView"), [_id()]),
        "/workloads/{id}.json": _get("A workload over time", _object(
            {**history, "trials": _list(_ref("TrialLine")),
             "decisions": _list(_ref("DecisionLine"))}), [_id(), part[1]]),
        "/catalog.json": _get("The newest offers that satisfy a condition", _object(
            {"offers": _list(_ref("Offer")), **catalog, **counts}),
            [_query("where", _TEXT), _query("sort", _TEXT), *part]),
        "/compare.json": _get("Two trials or two decisions", _object(
            {"kind": {"enum": ["trial", "decision", None]}, **sides,
             "rows": _list(_ref("Row"))}), [_query("a", _TEXT), _query("b", _TEXT)]),
    }  # fmt: skip


def _get(summary: str, schema: dict[str, Any], parameters: list[Any] | None = None) -> Any:
    def answer(said: str, schema: dict[str, Any]) -> dict[str, Any]:
        return {"description": said, "content": {"application/json": {"schema": schema}}}

    fault = _ref("Error")
    answers = {
        "200": answer(summary, schema),
        "400": answer("The address asks for what cannot be", fault),
        "404": answer("There is nothing of that name", fault),
        "503": answer("The store cannot be read", fault),
    }
    return {"get": {"summary": summary, "parameters": parameters or [], "responses": answers}}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _query(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def _id() -> dict[str, Any]:
    return {"name": "id", "in": "path", "required": True, "schema": {**_TEXT, "minLength": 1}}
