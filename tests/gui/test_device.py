"""The choice of a device: in the status bar and the menu, kept, and carried by the jobs that run the model."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtWidgets import QComboBox, QLabel, QLineEdit

from tests.gui import sessions
from tests.gui.conftest import Person
from workbench.gui.shell import settings
from workbench.models.placement import Placement
from workbench.steps.calibrate import CALIBRATE, CalibrateOptions
from workbench.steps.checks.reconstruction import RECONSTRUCTION, ReconstructionOptions
from workbench.steps.devices import DEVICES, DevicesOptions


def test_the_device_is_chosen_in_the_status_bar_and_kept(live: Callable[..., None]) -> None:
    settings.set_placement(Placement("cuda:9", "auto"))

    async def story(person: Person) -> None:
        status, runner = person.window.status, person.context.runner
        assert status.device_button.text() == "Device: cuda:9" and runner.placement == Placement("cuda:9")
        await person.click(status.device_button)
        await person.until(lambda: person.dialog("form"), 30)
        device, numbers = person.dialog("form").findChildren(QComboBox)
        texts = [device.itemText(row) for row in range(device.count())]
        assert texts[:2] == ["Automatic: the first CUDA device, else the CPU", "CPU"]
        assert device.currentText() == "cuda:9 (not there)"
        person.picture("device")
        await person.choose(device, 1)
        await person.choose(numbers, 1)
        await person.answer("form", "Use")
        await person.until(lambda: runner.placement == Placement("cpu", "stored"), 5)
        assert status.device_button.text() == "Device: cpu, stored"
        assert settings.placement() == Placement("cpu", "stored")

    live(story)


def test_a_cluster_is_an_address_or_refused_in_the_form(live: Callable[..., None]) -> None:
    settings.set_cluster("tcp:/nonsense")

    async def story(person: Person) -> None:
        status, runner = person.window.status, person.context.runner
        assert runner.cluster == ""  # what is stored is no address
        person.window.trigger("device")
        await person.until(lambda: person.dialog("form"), 30)
        memory, cluster = (person.dialog("form").findChild(QLineEdit, name) for name in ("memory", "cluster"))
        for field, wrong, problem in (
            (memory, "much", "'much' is not a size"),
            (cluster, "host:8786", "'host:8786' is not the address of a cluster"),
            (cluster, "local:none", "give a number of processes from 1 to 1024"),
        ):
            field.setText(wrong)
            await person.answer("form", "Use")
            assert any(problem in line.text() for line in person.dialog("form").findChildren(QLabel))
            field.setText("")
        cluster.setText(" local:1 ")
        await person.answer("form", "Use")
        await person.until(lambda: runner.cluster == "local:1", 5)
        assert status.device_button.text() == "Device: auto, local:1" and settings.cluster() == "local:1"

    live(story)


def test_jobs_that_run_the_model_carry_the_device(live: Callable[..., None]) -> None:
    async def story(person: Person) -> None:
        session, runner = sessions.full(1), person.context.runner
        person.window.use_placement(Placement("cuda:9"), "local:2")
        await person.open(session)
        for request, place, cluster in (
            (RECONSTRUCTION.request(session, ReconstructionOptions()), Placement("cuda:9"), ""),
            (CALIBRATE.request(session, CalibrateOptions()), Placement("cuda:9"), "local:2"),
            (DEVICES.request(None, DevicesOptions()), Placement(), ""),
        ):
            person.context.tasks.start(runner.run(request, lambda: None, on_error=lambda error: True))
            await person.until(lambda: person.context.jobs.views and person.context.jobs.views[-1].status != "queued")
            submitted = person.context.jobs.request(person.context.jobs.views[-1].id)
            assert (submitted.placement, submitted.cluster) == (place, cluster)

    live(story)
