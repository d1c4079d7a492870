"""Exporters by name.

One file each.  To add one, write the file and put an instance into ``EXPORTERS``; third parties publish theirs as a
``workbench.exporters`` entry point.
"""

from __future__ import annotations

from workbench.deployment.exporters.exporter import Exporter
from workbench.deployment.exporters.huggingface import HuggingFaceFolder
from workbench.deployment.exporters.packed_safetensors import PackedSafetensors
from workbench.deployment.exporters.plan_file import PlanFile
from workbench.deployment.exporters.python_script import PythonScript
from workbench.deployment.exporters.state_dict import StateDict
from workbench.errors import ExportError
from workbench.registry import Registry

__all__ = ["EXPORTERS", "REGISTRY", "Exporter", "exporter"]

EXPORTERS: tuple[Exporter, ...] = (PlanFile(), PythonScript(), PackedSafetensors(), StateDict(), HuggingFaceFolder())

REGISTRY: Registry[Exporter] = Registry(
    EXPORTERS, "workbench.exporters", kind="exporter", error=ExportError, member_type=Exporter
)


def exporter(name: str) -> Exporter:
    """Return the exporter called ``name``; ExportError that names the closest ones and lists all."""
    return REGISTRY.get(name.strip().lower())
