"""What the docstrings of a layer's facts say."""

from __future__ import annotations

import re
from dataclasses import fields

from workbench.models.layer import Layer


def test_the_docstring_speaks_of_fields_that_there_are() -> None:
    names = {field.name for field in fields(Layer)}
    described = set(re.findall(r"``([a-z_]+)`` (?:is|are|names|multiply)", Layer.__doc__ or ""))
    assert described and described <= names
