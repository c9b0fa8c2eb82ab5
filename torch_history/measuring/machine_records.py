"""How does asv know this machine, and which folders are machines'? A plugin of asv's that writes its record safely, and by
which `asv compare` compares on this machine if nobody named one."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asv.results
from asv import util
from asv.commands.compare import Compare
from asv.console import log
from asv.machine import Machine, MachineCollection
from asv.repo import NoSuchNameError, get_repo

from ..analysis.compare import choose_machine, whose
from ..releases.repository import in_asvs_terms
from ..store.launches import unfit
from ..store.machines import RECORD, record_of
from ..system.files import read_object, write_atomically
from .machine import describe


def save_record(machine: Machine, results_dir: str) -> None:
    """asv's `Machine.save`. Raises UserError in a folder of another machine, device, or set of variables."""
    path = Path(results_dir) / machine.machine / RECORD
    before: dict[str, Any] = {}
    with contextlib.suppress(ValueError):
        before = read_object(path)
    for key, words in (("machine", "of another machine"), ("device", "on another device"), ("set", "with others set")):
        had, have = before.get(key, ""), vars(machine).get(key, "")
        if had != have and (before if key == "set" else had and have):
            raise util.UserError(
                f"{path} is the record of results {words}: {had or 'none'}, and {have or 'none'} was to be measured. "
                "Rename that folder, or give what is measured now another name with TORCH_HISTORY_MACHINE."
            )
    # As asv writes JSON, but so that two commands at once never read half of it.
    path.parent.mkdir(parents=True, exist_ok=True)
    data = {**vars(machine), "version": Machine.api_version}
    write_atomically(path, json.dumps(data, indent=4, sort_keys=True))


def result_files(results: str) -> Iterator[tuple[str, str, str]]:
    """asv's `iter_results_paths`: folder, name and machine of each of its files; its own looks into causes/, too."""
    top = Path(results)
    for folder in [top] if _files(top) else sorted(path for path in top.glob("*/") if not unfit(path)):
        if files := _files(folder):
            machine = record_of(folder)["machine"]
            yield from ((str(folder), name, machine) for name in files)


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.json") if path.name not in (RECORD, "benchmarks.json"))


_asvs_compare = Compare.run


def _compare_on_one(
    _cls: type[Compare], /, conf: Any, hash_1: str, hash_2: str, machine: str | None = None, **options: Any
) -> Any:
    results, here, repo = Path(conf.results_dir), Machine.get_unique_machine_name(), get_repo(conf)
    tags = []
    for name in (hash_1, hash_2):
        with contextlib.suppress(NoSuchNameError):
            tags.append(repo.get_hash_from_name(name))
    with in_asvs_terms():
        chosen = choose_machine(results, machine, here, tags)
    if not machine and (said := whose(results, chosen, here, tags)):
        log.info(said)
    return _asvs_compare(conf, hash_1, hash_2, machine=chosen, **options)


def setup() -> None:
    """asv calls this when it loads the plugin: without `--machine`, results are recorded under this machine's record."""
    with in_asvs_terms():
        use(describe())
    asv.results.iter_results_paths = result_files
    Compare.run = classmethod(_compare_on_one)


_asvs_load, _asvs_save = MachineCollection.load, MachineCollection.save


def use(record: dict[str, str]) -> None:
    """Results are recorded under `record` from now on. Of this machine nothing is read from asv's collection of machines or
    written there: it lies in the home folder, which suites and nodes share."""

    def load(name: str, _path: str | None = None) -> Any:
        return {**record} if name == record["machine"] else _asvs_load(name, _path)

    def save(name: str, info: dict[str, str], _path: str | None = None) -> None:
        if name != record["machine"]:
            _asvs_save(name, info, _path)

    Machine.hardcoded_machine_name, Machine.save = record["machine"], save_record
    MachineCollection.load, MachineCollection.save = staticmethod(load), staticmethod(save)
