"""The registry: ours, third parties', and what happens to the broken ones."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import EntryPoint

import pytest

from workbench import registry as registry_module
from workbench.errors import SchemeError
from workbench.registry import Registry


@dataclass(frozen=True)
class Thing:
    name: str


OURS = (Thing("alpha"), Thing("beta"))
PLUGIN = Thing("gamma")
PAIR = (Thing("delta"), Thing("epsilon"))
TAKEN = Thing("alpha")
NAMELESS = object()


def published(monkeypatch: pytest.MonkeyPatch, *attributes: str) -> Registry[Thing]:
    entries = [EntryPoint(name=a.lower(), value=f"{__name__}:{a}", group="test.things") for a in attributes]
    monkeypatch.setattr(registry_module, "entry_points", lambda *, group: entries if group == "test.things" else [])
    return Registry(OURS, "test.things", kind="thing", error=SchemeError, member_type=Thing)


def test_ours_come_in_order_and_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    things = published(monkeypatch)
    assert things.names() == ("alpha", "beta")
    assert tuple(things) == OURS
    assert len(things) == 2
    assert things.get("beta") is OURS[1]
    assert "beta" in things
    assert "nothing" not in things


def test_an_unknown_name_raises_the_given_error_and_names_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SchemeError, match="no thing is called 'alpa'; the closest are alpha.*expected: alpha, beta"):
        published(monkeypatch).get("alpa")


def test_third_parties_publish_one_member_or_several(monkeypatch: pytest.MonkeyPatch) -> None:
    assert published(monkeypatch, "PLUGIN", "PAIR").names() == ("alpha", "beta", "gamma", "delta", "epsilon")


@pytest.mark.parametrize(
    ("attribute", "reason"),
    [("MISSING", "AttributeError"), ("NAMELESS", "expected a Thing, got object"), ("TAKEN", "the name alpha is taken")],
)
def test_a_broken_plugin_is_named_and_skipped(monkeypatch: pytest.MonkeyPatch, attribute: str, reason: str) -> None:
    things = published(monkeypatch, attribute, "PLUGIN")
    with pytest.warns(RuntimeWarning, match=f"thing {attribute.lower()} .*is skipped.*{reason}"):
        names = things.names()
    assert names == ("alpha", "beta", "gamma")
    assert things.get("alpha") is OURS[0]


def test_two_of_ours_with_one_name_are_a_programming_error() -> None:
    with pytest.raises(ValueError, match="two members"):
        Registry((Thing("a"), Thing("a")), "test.things", kind="thing", error=SchemeError)
