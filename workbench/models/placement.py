"""Where a model runs and in which numbers: a device that torch knows, and the dtype of its weights and activations.

Importing this loads no torch.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from workbench.errors import BackendUnavailableError
from workbench.memory import size_text

if TYPE_CHECKING:
    import torch

    from workbench.models.model import Model

AUTO, CPU, STORED, SINGLE = "auto", "cpu", "stored", "float32"

DTYPES = (AUTO, STORED, SINGLE)
"""``stored``: that of most weights in the model's file.  ``auto``: float32 on the CPU, ``stored`` elsewhere."""

NO_DOUBLE = "has no float64, in which sums are formed"


@dataclass(frozen=True, slots=True)
class Placement:
    """``device``: ``auto`` (the first CUDA device, else the CPU) or what torch calls it; ``dtype``: one of DTYPES.

    ``memory`` is how many bytes of the host's memory the work may take, None for what is free.
    """

    device: str = AUTO
    dtype: str = AUTO
    memory: int | None = None

    @property
    def text(self) -> str:
        """The choice in a few words."""
        dtype = "" if self.dtype == AUTO else f", {self.dtype}"
        return f"{self.device}{dtype}" + ("" if self.memory is None else f", {size_text(self.memory)} of memory")

    def resolved(self) -> torch.device:
        """Return the device, with arithmetic that others can repeat; raises BackendUnavailableError for any other.

        cuDNN's default for float32 is TF32, whose fractions have 10 bits.  MKL's default takes fewer threads than torch
        has where it likes to, and sums depend on their number; a number that is set is kept.
        """
        if self.dtype not in DTYPES:
            raise BackendUnavailableError(f"there is no dtype {self.dtype!r} to run in; choose {', '.join(DTYPES)}")
        device = find_device(self.device)
        import torch

        torch.set_num_threads(torch.get_num_threads())
        if device.type == "cuda":
            torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
            warnings.filterwarnings("ignore", "Attempting to run cuBLAS", UserWarning)  # in the backward pass's thread
        return device

    def run_dtype(self, stored: str | None) -> torch.dtype:
        """Return the dtype to run a model in most of whose weights are stored as ``stored`` (None: not known)."""
        import torch

        halves = {"float16": torch.float16, "bfloat16": torch.bfloat16}
        own = halves.get(stored or "", torch.float32)
        chosen = self.dtype if self.dtype != AUTO else SINGLE if self.resolved().type == CPU else STORED
        return own if chosen == STORED else torch.float32


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A device that exists.  ``text`` names it for people; ``fault`` is why it cannot be used, empty where it can."""

    name: str
    text: str
    fault: str = ""


def devices() -> tuple[Device, ...]:
    """Return every device that torch sees, the CPU first."""
    import torch

    listed = [Device(name=CPU, text=CPU)]
    for kind in dict.fromkeys(("cuda", "xpu", "mps", torch._C._get_privateuse1_backend_name())):
        module = getattr(torch, kind, None)
        if module is None or not module.is_available():
            continue
        for number in range(module.device_count()):
            name = f"{kind}:{number}"
            fault = NO_DOUBLE if kind == "mps" else ""
            listed.append(_cuda(number) if kind == "cuda" else Device(name=name, text=name, fault=fault))
    return tuple(listed)


def _cuda(number: int) -> Device:
    """Describe a CUDA device; too old is one below the oldest architecture that this torch was built for."""
    import torch

    facts = torch.cuda.get_device_properties(number)
    own = (facts.major, facts.minor)
    built = [code.partition("_")[2] for code in torch.cuda.get_arch_list() if code.startswith("sm_")]
    known = [(int(digits[:-1]), int(digits[-1])) for digits in built if digits.isdigit()]
    fault = ""
    if known and own < min(known):
        oldest = ".".join(map(str, min(known)))
        fault = f"is too old: its compute capability is {own[0]}.{own[1]}, this torch needs {oldest}"
    text = f"cuda:{number} ({facts.name}, {facts.total_memory / 1e9:.0f} GB)"
    return Device(name=f"cuda:{number}", text=text, fault=fault)


def find_device(name: str = AUTO) -> torch.device:
    """Return the device called ``name``; ``auto`` is the first CUDA device that can be used, else the CPU.

    Raises BackendUnavailableError, which says what exists, for one that is unknown, missing or too old.
    """
    import torch

    text = name.strip().lower()
    if text == CPU or (text == AUTO and not torch.cuda.is_available()):
        return torch.device(CPU)
    there = devices()
    if text == AUTO:
        return torch.device(next((each.name for each in there if each.name[:4] == "cuda" and not each.fault), CPU))
    numbered = f"{text}:0" if ":" not in text else text
    device = next((each for each in there if numbered == each.name or text == each.name), None)
    if device is None:
        choices = ", ".join(each.text for each in there)
        reason = "; this torch was built without CUDA" if text[:4] == "cuda" and torch.version.cuda is None else ""
        raise BackendUnavailableError(
            f"there is no device {name!r} here, there is {choices}{reason}; choose one of these, or auto"
        )
    if device.fault:
        raise BackendUnavailableError(f"{device.text} {device.fault}; choose another device, or cpu")
    return torch.device(device.name)


def described(device: torch.device) -> str:
    """Return the name that results record: ``cpu``, ``cuda:0 (NVIDIA H100 PCIe, 80 GB)``."""
    if device.type == CPU:
        return CPU
    name = f"{device.type}:{device.index or 0}"
    return next((each.text for each in devices() if each.name == name), name)


def ran_on(model: Model) -> str:
    """Return what results record of a model's place: ``cpu``, ``cuda:0 (NVIDIA H100, 80 GB), bfloat16``."""
    dtype = str(getattr(model, "dtype", SINGLE)).removeprefix("torch.")
    return described(model.device) + ("" if dtype == SINGLE else f", {dtype}")


def place_notes(model: Model, what: str) -> list[str]:
    """Return the sentence that says where and in what a result was computed; none for float32 on the CPU."""
    place = ran_on(model)
    return [] if place == CPU else [f"{what} on {place}"]
