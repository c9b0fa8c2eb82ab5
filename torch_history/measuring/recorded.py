"""Where does a release run to be counted on the recorder? In an environment of its own, started with the recorder loaded."""

from pathlib import Path
from typing import Any

from recorder import Refused
from recorder.build import DROPPED, Built, build
from recorder.environments import create

from ..releases.axis import Release
from ..releases.environments import ReleaseEnvironment
from ..system.errors import SessionError
from .subjects import OwnWorkload

FOLDER = "recorder"
"""Folder in `env/`: these environments hold another set of packages than those that are measured on a device."""


class RecorderEnvironment(ReleaseEnvironment):
    """The environments of one lane on the recorder, of which one release's is selected at a time; see ReleaseEnvironment."""

    def __init__(self, conf: Any, python: str, card: str, own: OwnWorkload | None = None) -> None:
        """Raises SessionError where a user's `own` file needs more than torch."""
        if own and own.requirements:
            said = f"{own.path.name} has `requirements`, and the recorder has only torch. Measure it on cpu or cuda."
            raise SessionError(said)
        super().__init__(conf, python, {}, {})
        self.root = self.root / FOLDER
        self._card = card
        self._built: dict[str, Built] = {}

    def _make(self, release: Release, folder: Path, lock: int) -> None:
        try:
            create(release, self._python, folder)
            if release.tag not in self._built:
                self._built[release.tag] = build(folder)
        except Refused as refused:
            self._refuse(release, str(refused))

    def surroundings(self, inherited: dict[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in super().surroundings(inherited).items() if name not in DROPPED}
        built = self._built.get(self._selected or "")
        return {**kept, **built.variables(self._card)} if built else kept
