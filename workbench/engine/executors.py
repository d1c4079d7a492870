"""Where the workers of a step come from: processes of this machine, or a Dask cluster."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from workbench.engine.local_executor import LocalExecutor
from workbench.errors import BackendUnavailableError, first_line
from workbench.models.placement import Placement
from workbench.models.workers import Workers, using

LOCAL = "local:"
SCHEMES = ("tcp://", "tls://", "ucx://")
CONNECT_SECONDS = 10
MOST = 1024
"""The most processes of this machine."""

RETRIES = 2
"""How often Dask gives the piece of a lost worker to another one."""


def cluster(
    address: str, *, device: str = "auto", dtype: str = "auto", trust: bool = False
) -> AbstractContextManager[Workers]:
    """Let calibrations and tables of losses run on other processes meanwhile: ``with wb.cluster("local:4"): ...``.

    ``address`` is a Dask scheduler's (``tcp://host:8786``) or ``local:N`` for N processes of this machine.  Workers
    open the model themselves, at the same path or in the folder that ``WORKBENCH_MODELS`` names there.  Results have
    the bits of a run in one process.  Raises BackendUnavailableError.
    """
    require_address(address)
    start = _local if address.startswith(LOCAL) else _dask
    return using(start(address, Placement(device, dtype), trust))


def require_address(address: str) -> None:
    """Raise BackendUnavailableError for a text that cannot be a cluster's address; nothing is asked there."""
    if address.startswith(LOCAL):
        if not 1 <= _processes(address) <= MOST:
            raise BackendUnavailableError(f"{address!r}: give a number of processes from 1 to {MOST}, such as local:4")
    elif not address.startswith(SCHEMES):
        raise BackendUnavailableError(
            f"{address!r} is not the address of a cluster; give that of a Dask scheduler, such as tcp://host:8786, or "
            "local:4 for four processes of this machine"
        )


def _processes(address: str) -> int:
    text = address.removeprefix(LOCAL)
    return int(text) if text.isdecimal() else 0


def _local(address: str, placement: Placement, trust: bool) -> Workers:
    count = _processes(address)
    return Workers(
        start=lambda: LocalExecutor(count), count=count, placement=placement, trust=trust,
        stop=LocalExecutor.kill,
    )  # fmt: skip


def _dask(address: str, placement: Placement, trust: bool) -> Workers:
    try:
        from distributed import Client
    except ImportError:
        raise BackendUnavailableError(
            "a cluster needs Dask; install it: pip install 'quantization-workbench[cluster]'"
        ) from None
    try:
        client: Any = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise BackendUnavailableError(
            f"no Dask scheduler answers at {address} ({first_line(error)}); start one: dask scheduler"
        ) from error
    workers = client.scheduler_info(n_workers=-1)["workers"]
    count = sum(worker["nthreads"] for worker in workers.values())
    if not count:
        client.close()
        raise BackendUnavailableError(f"the cluster at {address} has no workers; start some: dask worker {address}")
    return Workers(
        start=lambda: client.get_executor(retries=RETRIES), count=count, placement=placement, trust=trust,
        stop=lambda executor: executor.shutdown(wait=False), end=client.close,
    )  # fmt: skip
