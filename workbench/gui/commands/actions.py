"""The table of all actions."""

from __future__ import annotations

from PySide6.QtWidgets import QFileDialog

from workbench.gui.commands import action, edit, output, placement, run, view
from workbench.gui.commands.action import Action, has_selection, has_session, step_action
from workbench.gui.commands.document import MODEL_FILES, SESSIONS
from workbench.gui.commands.tour import begin
from workbench.gui.shell.help import Guide
from workbench.gui.shell.presets import PRESETS
from workbench.steps.calibrate import CALIBRATE
from workbench.steps.checks.audit import AUDIT
from workbench.steps.checks.refine import REFINE
from workbench.steps.checks.runtime import RUNTIME
from workbench.steps.evaluate import EVALUATE
from workbench.steps.files.export import EXPORT
from workbench.steps.score import SCORE
from workbench.steps.search import SEARCH
from workbench.steps.targets import TARGETS
from workbench.steps.timing.kernels import TIME_KERNELS
from workbench.steps.train import TRAIN

FILE, FOLDER = QFileDialog.FileMode.ExistingFile, QFileDialog.FileMode.Directory
DEMO = "demo:language-model"

MENUS = ("&File", "&Edit", "&Run", "&View", "&Help")

ACTIONS = (
    Action(id="open_file", text="&Open Model File…", shortcut="Ctrl+O", menu="&File",
           run=lambda c: c.document.choose("Open a model file", FILE, MODEL_FILES),
           tip="Open a .safetensors, .gguf, .onnx, .pt2 or Python file", icon="open"),
    Action(id="open_folder", text="Open Model F&older…", shortcut="Ctrl+Shift+O", menu="&File",
           run=lambda c: c.document.choose("Open a model folder", FOLDER),
           tip="Open a Hugging Face folder or a sharded checkpoint"),
    Action(id="open_session", text="Open &Session…", shortcut="Ctrl+Alt+O", menu="&File",
           run=lambda c: c.document.choose("Open a session", FILE, SESSIONS), tip="Open a .qwb file"),
    Action(id="open_demo", text="Open the &Demo", shortcut="Ctrl+Shift+D", menu="&File",
           run=lambda c: c.document.open_path(DEMO), tip="Open the bundled language model"),
    Action(id="save", text="&Save", shortcut="Ctrl+S", menu="&File", run=lambda c: c.document.start_saving(),
           why_not=has_session, tip="Save the session; if that fails, the old file stays intact", icon="save",
           separated=True),
    Action(id="save_as", text="Save &As…", shortcut="Ctrl+Shift+S", menu="&File",
           run=lambda c: c.document.start_saving(ask=True), why_not=has_session),
    step_action(EXPORT, "export", run.step_command(EXPORT, "Export", done="Exported", first=run.export_for_target),
                mnemonic="E", menu="&File", icon="export"),
    Action(id="report", text="Save a &Report…", shortcut="Ctrl+P", menu="&File", run=output.report, why_not=has_session,
           tip="Save every plot and table as one page to read and print"),
    Action(id="save_picture", text="Save the P&icture…", shortcut="Ctrl+Alt+P", menu="&File", run=output.save_picture,
           why_not=has_session, tip="Save the plot that has the keyboard focus as PNG or SVG"),
    Action(id="save_table", text="Save the &Table…", shortcut="Ctrl+Alt+V", menu="&File", run=output.save_table,
           why_not=has_session, tip="Save the table that has the keyboard focus as comma-separated values"),
    Action(id="compare", text="Co&mpare with a Session…", shortcut="Ctrl+Alt+D", menu="&File", run=output.compare,
           why_not=has_session, tip="Show the open session and another side by side"),
    Action(id="close", text="&Close", shortcut="Ctrl+W", menu="&File", run=lambda c: c.document.close(),
           why_not=has_session, separated=True),
    Action(id="quit", text="&Quit", shortcut="Ctrl+Q", menu="&File", run=lambda c: c.window.quit()),
    Action(id="undo", text="&Undo", shortcut="Ctrl+Z", menu="&Edit", run=edit.undo,
           why_not=action.can_undo, icon="undo"),
    Action(id="redo", text="&Redo", shortcut="Ctrl+Shift+Z", menu="&Edit", run=edit.redo,
           why_not=action.can_redo, icon="redo"),
    Action(id="set_scheme", text="Set &Scheme…", shortcut="Ctrl+E", menu="&Edit",
           run=lambda c: edit.layers_panel(c).choose_scheme(), why_not=has_selection,
           tip="Choose a scheme for the selected layers", separated=True),
    Action(id="fewer_bits", text="&Fewer Bits", shortcut="Ctrl+-", menu="&Edit", run=lambda c: edit.change_bits(c, -1),
           why_not=has_selection, tip="Give the selected layers the next smaller scheme"),
    Action(id="more_bits", text="&More Bits", shortcut="Ctrl+=", menu="&Edit", run=lambda c: edit.change_bits(c, 1),
           why_not=has_selection, tip="Give the selected layers the next larger scheme"),
    Action(id="keep", text="&Keep in Floating Point", shortcut="Ctrl+0", menu="&Edit", run=edit.keep,
           why_not=has_selection),
    Action(id="lock", text="&Lock or Unlock", shortcut="Ctrl+L", menu="&Edit", run=edit.lock, why_not=has_selection,
           tip="A search leaves locked layers as they are"),
    Action(id="repair", text="&Repair for the Target", shortcut="Ctrl+Shift+T", menu="&Edit", run=edit.repair,
           why_not=action.has_target, tip="Give layers that the target cannot run the nearest scheme that it can"),
    Action(id="select_all", text="Select &All Layers", shortcut="Ctrl+Shift+A", menu="&Edit", run=edit.select_all,
           why_not=has_session, separated=True),
    Action(id="select_similar", text="Select Si&milar Layers", shortcut="Ctrl+Shift+M", menu="&Edit",
           run=lambda c: edit.layers_panel(c, reveal=False).select_similar(c.context.workspace.state.selection),
           why_not=has_selection, tip="Select the layers of the same kind, shape and last name"),
    Action(id="next_decision", text="&Next Decision", shortcut="Ctrl+J", menu="&Edit", run=edit.next_decision,
           why_not=action.has_table, tip="Select the layer where more bits save most loss for each byte"),
    Action(id="copy_table", text="Cop&y the Numbers", shortcut="Ctrl+Alt+N", menu="&Edit", run=output.copy_table,
           why_not=has_session, separated=True,
           tip="Copy the table, heatmap or plot that has the keyboard focus as plain numbers"),
    Action(id="copy_picture", text="Copy the &Picture", shortcut="Ctrl+Alt+I", menu="&Edit", run=output.copy_picture,
           why_not=has_session, tip="Copy the plot that has the keyboard focus as a picture"),
    Action(id="columns", text="&Columns…", shortcut="Ctrl+Shift+C", menu="&Edit",
           run=lambda c: edit.layers_panel(c).choose_columns(), why_not=has_session,
           tip="Choose the columns of the layers"),
    Action(id="find", text="F&ilter Layers", shortcut="Ctrl+F", menu="&Edit",
           run=lambda c: edit.layers_panel(c).go_to_filter(), why_not=has_session),
    step_action(CALIBRATE, "calibrate", run.step_command(CALIBRATE, "Calibrate", panel="distributions"), mnemonic="C"),
    step_action(SCORE, "score", run.score, mnemonic="S"),
    step_action(REFINE, "refine", run.refine, mnemonic="D"),
    step_action(SEARCH, "search", run.search, mnemonic="P", why_not=action.has_table, asks=False),
    step_action(TARGETS, "best_target", run.best_target, mnemonic="g", why_not=action.has_table, asks=False),
    step_action(EVALUATE, "evaluate", run.step_command(EVALUATE, "Evaluate", panel="accuracy"), mnemonic="E"),
    step_action(AUDIT, "audit", run.audit, mnemonic="u"),
    step_action(TRAIN, "train", run.step_command(TRAIN, "Train", done="Trained"), mnemonic="n"),
    step_action(TIME_KERNELS, "time_kernels", run.step_command(TIME_KERNELS, "Measure", panel="timing"), mnemonic="T",
                icon="time"),
    step_action(RUNTIME, "runtime", run.prove, mnemonic="i"),
    Action(id="run_all", text="Run A&ll", shortcut="Ctrl+F5", menu="&Run", run=run.run_all, why_not=action.can_run_all,
           tip="Calibrate, score, search within the budget and evaluate: what is not done yet", icon="demo",
           separated=True),
    Action(id="device", text="De&vice…", shortcut="Ctrl+Alt+G", menu="&Run", run=placement.choose,
           tip="Choose where models run and what they compute in"),
    Action(id="cancel", text="C&ancel the Job", shortcut="Ctrl+.", menu="&Run", run=run.cancel,
           why_not=action.is_running, separated=True),
    Action(id="retry", text="&Retry the Last Job", shortcut="Ctrl+Shift+R", menu="&Run", run=run.retry,
           why_not=action.has_failed),
    Action(id="palette", text="Co&mmands…", shortcut="Ctrl+K", also="Ctrl+Shift+P", menu="&View",
           run=view.find_anything,
           tip="Find any command, panel, layer, scheme, plan, metric, target or word of the guide"),
    Action(id="copy_python", text="Copy the Last Job as P&ython", shortcut="Ctrl+Alt+C", menu="&Run",
           run=run.copy_python, why_not=has_session, tip="Copy a script that repeats the job"),
    Action(id="switch_colours", text="&Light or Dark", shortcut="Ctrl+T", menu="&View", run=view.switch_colours),
    Action(id="system_colours", text="&Colours of the System", shortcut="Ctrl+Alt+T", menu="&View",
           run=view.system_colours, tip="Follow the light or dark colours of the desktop"),
    Action(id="heat_colours", text="&Heatmap Colours", shortcut="Ctrl+Alt+H", menu="&View", run=view.next_heat_colours,
           tip="Viridis, cividis or grey: all can be told apart by colour-blind people"),
    *(Action(id=f"layout_{preset}", text=f"Layout: {preset.capitalize()}", shortcut=f"Ctrl+Alt+{place}", menu="&View",
             run=view.layout(preset), why_not=has_session, separated=place == 1, tip="Arrange the panels for this work")
      for place, preset in enumerate(PRESETS, 1)),
    Action(id="language", text="Langua&ge…", shortcut="Ctrl+Alt+M", menu="&View", run=view.choose_language,
           tip="Choose the language of the window"),
    Action(id="decimal_mark", text="&Decimal Mark…", shortcut="Ctrl+Alt+U", menu="&View", run=view.choose_decimal_mark,
           tip="Choose whether the window shows numbers with a decimal point or comma"),
    Action(id="reset_layout", text="&Reset the Layout", shortcut="Ctrl+Shift+L", menu="&View",
           run=lambda c: c.window.reset_layout()),
    Action(id="guide", text="User &Guide", shortcut="F1", menu="&Help", run=lambda c: Guide(c.window.widget).show(),
           tip="Explanations of all panels and steps"),
    Action(id="tour", text="&Tour of the Demo", shortcut="Ctrl+F1", menu="&Help",
           run=lambda c: begin(c.context, c.window), why_not=has_session, tip="A short text beside each panel"),
    Action(id="show_log", text="Show &Log", shortcut="Ctrl+Alt+L", menu="&Help", run=view.show_log,
           tip="Open the folder of the log files, for a bug report"),
    Action(id="report_problem", text="&Report a Problem…", shortcut="Ctrl+Alt+R", menu="&Help", run=view.report_problem,
           tip="Read what happened, and save it as one archive to send"),
    Action(id="about", text="&About", shortcut="Ctrl+Shift+F1", menu="&Help", run=view.about,
           tip="Versions and devices"),
)  # fmt: skip
