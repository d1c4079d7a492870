"""Where models run: a device, a dtype, the processes that help; kept in the settings, shown in the status bar."""

from __future__ import annotations

from dataclasses import dataclass, replace

from PySide6.QtWidgets import QDialog

from workbench.engine.executors import require_address
from workbench.gui.commands.command import Command
from workbench.gui.shell import dialogs, settings
from workbench.gui.shell.forms import Form
from workbench.memory import parse_size
from workbench.models.placement import AUTO, CPU, SINGLE, STORED, Device, Placement
from workbench.steps.devices import PLACES, PlacesOptions
from workbench.steps.options import Choice, OptionInfo, option

MEANINGS = {
    AUTO: "Automatic: float32 on the CPU, the model's own elsewhere", STORED: "The model's own, as its file stores it",
    SINGLE: "float32",
}  # fmt: skip


def form_of(devices: tuple[Device, ...], chosen: Placement, cluster: str) -> Form:
    """Return the form that offers the ``devices``, the ``chosen`` one even if it is gone, and the cluster's address."""
    names = {AUTO: "Automatic: the first CUDA device, else the CPU"}
    names |= {each.name: f"{each.text} {each.fault}".strip() for each in devices}
    names = {name: "CPU" if name == CPU else text for name, text in names.items()}
    names.setdefault(chosen.device, f"{chosen.device} (not there)")

    @dataclass(frozen=True, slots=True, kw_only=True)
    class PlaceOptions:
        device: str = option(AUTO, OptionInfo(
            label="Device", help="where models are loaded and run",
            choices=lambda: tuple(Choice(name, text) for name, text in names.items()),
        ))  # fmt: skip
        dtype: str = option(AUTO, OptionInfo(
            label="Numbers", help="what models compute in; sums, losses and curvature are float32 or wider in any case",
            choices=lambda: tuple(Choice(name, text) for name, text in MEANINGS.items()),
        ))  # fmt: skip

        memory: str = option("", OptionInfo(
            label="Memory", empty="what is free", metavar="SIZE", parse=parse_size,
            help="how much memory the work may take, such as 2GB: the rest is read from the model's file, or written "
            "to disk",
        ))  # fmt: skip
        cluster: str = option("", OptionInfo(
            label="Cluster", empty="none", metavar="ADDRESS", parse=address_of,
            help="other processes that calibrations and tables of losses use: local:4 for four processes of this "
            "machine, tcp://host:8786 for a Dask scheduler",
        ))  # fmt: skip

    memory = "" if chosen.memory is None else f"{chosen.memory / 1e9:g}GB"
    return Form(PlaceOptions(device=chosen.device, dtype=chosen.dtype, memory=memory, cluster=cluster))


def address_of(text: str) -> str:
    """Return the address of a cluster, empty for none; raises BackendUnavailableError."""
    address = text.strip()
    if address:
        require_address(address)
    return address


async def choose(command: Command) -> None:
    """Ask where models shall run from now on; the open model moves with its next job."""
    runner = command.context.runner
    devices = await runner.run(PLACES.request(None, PlacesOptions()), lambda: None)
    if devices is None:
        return
    form = form_of(devices, runner.placement, runner.cluster)
    text = "The next job loads the model there. A session can be calibrated on one device and used on another."
    dialog = dialogs.FormDialog(command.window.widget, "Device", text, form, "Use")
    if await dialogs.finished(dialog) != QDialog.DialogCode.Accepted:
        return
    answer = form.value()
    memory = parse_size(answer.memory) if answer.memory.strip() else None
    chosen = replace(runner.placement, device=answer.device, dtype=answer.dtype, memory=memory)
    address = address_of(answer.cluster)
    settings.set_placement(chosen)
    settings.set_cluster(address)
    command.window.use_placement(chosen, address)
    command.context.messages.say(f"Models run on {chosen.text} from the next job on")
