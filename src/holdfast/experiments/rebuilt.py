"""The `Model` that a finished run used."""

from __future__ import annotations

from holdfast import registry
from holdfast.experiments.request import Request
from holdfast.experiments.store import Record
from holdfast.models.base import Model
from holdfast.settings import build, fields


def recipe_of(record: Record) -> Model:
    """The `Model` of a run: its sizes from the configuration, the locations of its weights from the command."""
    own = record.config["model"]
    command = record.environment.get("command", "")
    request = Request.from_command(command) if command else Request()
    given = request.settings
    entry = registry.find(request.model or own["name"], "model")
    kind: type[Model] = entry.load()
    places = {name: given[f"model.{name}"] for name in kind.places if f"model.{name}" in given}
    places = {**entry.given, **places}
    recipe: Model = build(kind, {name: own[name] for name in fields(kind) if name in own} | places, "model")
    return recipe
