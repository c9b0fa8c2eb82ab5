"""How does asv know this machine? A plugin of asv's that writes its record and asv's collection of machines safely."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

from asv import util
from asv.console import log
from asv.machine import Machine, MachineCollection

from contract.surroundings import KEEP

from ..errors import UserError
from ..store.files import read_object, set_aside, write_atomically
from ..store.machines import RECORD
from .machine import describe


def save_record(machine: Machine, results_dir: str) -> None:
    """asv's `Machine.save` in one step. Raises UserError where the folder holds results of another machine or device."""
    path = Path(results_dir) / machine.machine / RECORD
    with contextlib.suppress(ValueError):
        before = read_object(path)
        other, device = before.get("machine"), before.get("device")
        if other not in (machine.machine, None):
            raise util.UserError(
                f"{path} is the record of another machine, {other}. Rename that folder to {other}, or give this machine "
                "another name with TORCH_HISTORY_MACHINE."
            )
        ours = vars(machine).get("device")
        if device and ours and device != ours:
            raise util.UserError(
                f"{path} is the record of results on '{device}', and '{ours}' was to be measured: give what is measured now "
                "another name with TORCH_HISTORY_MACHINE."
            )
        had, have = before.get("set", ""), vars(machine).get("set", "")
        if before and had != have:
            raise util.UserError(
                f"{path} is the record of results with {had or 'no variables'} set, and with {have or 'none'} set was to be "
                f"measured. Give what is measured now another name with TORCH_HISTORY_MACHINE, or change {KEEP}."
            )
    _write(path, vars(machine), Machine.api_version)


def remember(name: str, record: dict[str, str], _path: str | None = None) -> None:
    """asv's `MachineCollection.save` in one step; a damaged collection, which other suites share, is kept beside."""
    path = Path(_path or MachineCollection.get_machine_file_path())
    try:
        known = read_object(path) if path.exists() else {}
    except ValueError as error:
        log.warning(f"{path} was damaged: {error}. It is kept as {set_aside(path)}, and a new one was started.")
        known = {}
    _write(path, {**known, name: record}, MachineCollection.api_version)


def _write(path: Path, data: dict[str, Any], version: int) -> None:
    """As asv writes JSON, but so that two commands at once never read half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps({**data, "version": version}, indent=4, sort_keys=True))


def setup() -> None:
    """asv calls this when it loads the plugin: without `--machine`, results are recorded under this machine's record."""
    try:
        use(describe())
    except UserError as error:
        raise util.UserError(str(error)) from error  # which asv prints as a sentence


def use(record: dict[str, str]) -> None:
    """Results are recorded under `record` from now on."""
    Machine.hardcoded_machine_name = record["machine"]
    Machine.save, MachineCollection.save = save_record, staticmethod(remember)
    MachineCollection.save(record["machine"], record)
