"""What an evaluation and a timing say; plain data that the window draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

PROFILED_LAUNCHES = 8
"""Launches that Nsight Compute profiles: those that warm a kernel up, alike except for the cache."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metric:
    """One figure of the quantized model beside the floating-point baseline.

    ``low`` and ``high`` bound the 95 % bootstrap confidence interval of ``value`` over samples; ``per_sample`` holds
    what it was computed from (float64, one entry for each sample), ``baseline_per_sample`` the same of the
    floating-point model and ``weights`` what each sample counts (its tokens); None in files of older versions.
    ``higher_is_better`` tells which way is good.
    """

    name: str
    unit: str
    value: float
    baseline: float
    low: float
    high: float
    samples: int
    higher_is_better: bool
    per_sample: np.ndarray = field(repr=False)
    baseline_per_sample: np.ndarray | None = field(default=None, repr=False)
    weights: np.ndarray | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Changed:
    """A token (or a whole sample, ``position`` -1) whose output quantization changed: ``kl`` in nats.

    ``sample`` counts from 0 through the data.  ``context`` is the text up to and with the token at ``position``;
    ``baseline`` and ``quantized`` the next token (or the class) that each model predicts, ``actual`` what does,
    empty where that is not known.  ``flipped``: the two differ.
    """

    sample: int
    position: int
    kl: float
    flipped: bool
    context: str
    baseline: str
    quantized: str
    actual: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Evaluation:
    """A plan's measured figures on one data set, with the prediction it is to be compared with.

    ``predicted_kl`` in the unit of ``divergence`` (None where the session does not price all that the plan rounds);
    ``predicted_error`` is its standard error by the ``predicted_samples`` that made it, None where that is not known,
    ``predicted_doubt`` what its form may be wrong by, as a logarithm at 95 % (None in files of older versions);
    ``nbytes`` of all tensors; ``plan_hash`` identifies the plan, ``data_hash`` the data.  ``changed`` lists the most
    changed tokens or samples; ``notes`` what was not as asked for, such as layers that were kept because their weights
    hold NaN.
    """

    plan_name: str
    plan_hash: str
    data_name: str
    data_hash: str
    bits_per_weight: float
    nbytes: int
    predicted_kl: float | None
    metrics: Mapping[str, Metric]
    changed: tuple[Changed, ...] = ()
    notes: tuple[str, ...] = ()
    predicted_error: float | None = None
    predicted_samples: int = 0
    predicted_doubt: float | None = None

    @property
    def divergence(self) -> Metric | None:
        """What ``predicted_kl`` stands for: KL, or half the squared distance where outputs are not logits."""
        return self.metrics.get("kl", self.metrics.get("half_squared_distance"))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Timing:
    """Kernel times of one layer's shape under one scheme beside the floating-point baseline, on one device.

    ``samples`` and ``baseline_samples`` are microseconds, every repeat (float64); ``kernel`` names what ran
    (``torch fp32 linear``); ``note`` says whether it runs this scheme or a similar one.  Of a CUDA kernel ``read``
    is the bytes that a launch must read and ``occupancy`` says, for each kernel that is the workbench's own, how much
    of a multiprocessor it can fill, and what limits it; 0 and empty for others and in files of older versions.
    """

    layer: str
    scheme: str
    kernel: str
    baseline_kernel: str
    shape: tuple[int, int]
    batch: int
    device: str
    note: str
    samples: np.ndarray
    baseline_samples: np.ndarray
    read: int = 0
    occupancy: str = ""

    @property
    def on_cuda(self) -> bool:
        """Whether a CUDA device ran the kernel."""
        return self.kernel.startswith("cuda ")

    @property
    def gigabytes_per_second(self) -> float:
        """Bytes that a launch must read over the median time; NaN where they were not counted."""
        return self.read / self.median / 1e3 if self.read and self.samples.size else float("nan")

    @property
    def teraoperations_per_second(self) -> float:
        """Multiplications and additions of the product over the median time, 1e12 a second; NaN without samples."""
        count = 2 * self.batch * self.shape[0] * self.shape[1]
        return count / self.median / 1e6 if self.samples.size else float("nan")

    @property
    def ncu_command(self) -> str | None:
        """The command that times the row's shape and scheme again under Nsight Compute; None for a CPU kernel."""
        from workbench_kernels.bench.profiling import ncu_command

        if not self.on_cuda:
            return None
        rows, columns = self.shape
        again = f"workbench bench --shape {rows}x{columns} --schemes {self.scheme} --batch {self.batch}"
        return str(ncu_command(self.kernel, again, PROFILED_LAUNCHES))

    @property
    def no_occupancy(self) -> str:
        """Why there is no occupancy; an empty string if there is one."""
        if self.occupancy:
            return ""
        return "a library's kernel, or timed by an older version" if self.on_cuda else "a CPU kernel has none"

    @property
    def median(self) -> float:
        """Median microseconds of the quantized kernel."""
        return float(np.median(self.samples))

    @property
    def baseline_median(self) -> float:
        """Median microseconds of the baseline kernel."""
        return float(np.median(self.baseline_samples))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """``bandwidth`` in GB/s and ``peak`` in 1e9 operations a second (a multiply-add is two) of ``device``.

    ``how`` says in words where they come from; ``measured`` tells them from an estimate.
    """

    device: str
    bandwidth: float
    peak: float
    how: str
    measured: bool
