"""What becomes of running jobs when the window closes."""

from __future__ import annotations

import asyncio

from PySide6.QtWidgets import QApplication, QWidget

from workbench.engine.jobs import JobView
from workbench.gui.context.context import Context
from workbench.gui.shell import dialogs


def unfinished(context: Context) -> list[JobView]:
    """Return the jobs that closing would end; a save is waited for."""
    jobs = context.jobs
    views = [view for view in jobs.views if view.listed and not view.status.over]
    return [view for view in views if (request := jobs.request(view.id)) is None or request.aside != "files"]


async def may_leave_jobs(window: QWidget, context: Context) -> bool:
    """Ask what becomes of the jobs; returns whether the window may close."""
    views = unfinished(context)
    if not views:
        return True
    others = f" and {len(views) - 1} more" if len(views) > 1 else ""
    answer = await dialogs.ask(
        window, "Close while a job is running?", f"{views[0].title}{others}",
        (("wait", "&Wait, Then Close"), ("cancel", "&Cancel and Keep What Is Done"),
         ("background", "Go On in the &Background"), ("stay", "Do &Not Close")), "stay",
    )  # fmt: skip
    if answer == "stay":
        return False
    if answer == "cancel":
        for view in views:
            context.jobs.cancel(view.id)
    window.setVisible(answer != "background")
    while unfinished(context):
        await asyncio.sleep(0.1)
    await asyncio.sleep(0.1)  # results join the document
    if answer == "background":
        window.show()
        QApplication.alert(window)
        context.messages.say("The jobs in the background have ended")
    return answer != "background"
