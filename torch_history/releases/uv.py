"""How is uv asked? The pinned one, as a child that ends with this process and holds what this process has locked."""

import re
import subprocess
import sys
from collections.abc import Iterable, Sequence

from contract.children import dies_with_parent

from ..system.errors import UserError

OUT_OF_REACH = re.compile(
    r"(?im)^[^\w\n]*(\w+( by)?: )?(request failed|error sending request|http status server|operation timed|error decoding)"
)
"""How a line of uv's begins where it cannot reach a package index; names and paths come later in a line."""

INDEX = "uv's index settings (UV_DEFAULT_INDEX; of uv's files only the one that UV_CONFIG_FILE names is read)"
"""What decides where uv looks, as a sentence about an index that is out of reach has it."""


def told(error: BaseException) -> str:
    """Why uv failed, in a sentence without its full stop: by its own words, where it could not reach the index by ours."""
    said = str(getattr(error, "stderr", "") or error)
    if OUT_OF_REACH.search(said):
        return f"the package index is out of reach. Check the network or {INDEX}"
    return f"uv said: {' '.join(said.split())[-600:]}"


def find_uv_bin() -> str:
    """The path of uv, looked for only where something is to be installed. Raises UserError."""
    try:
        from uv import find_uv_bin as find

        return find()
    except (ImportError, FileNotFoundError) as error:
        raise UserError(
            f"PyTorch releases are installed by the package uv, and {sys.executable} does not have it. Install it with "
            f"`{sys.executable} -m pip install uv`, or measure a torch that is already installed: "
            "`torch-history run --installed`."
        ) from error


def run_uv(arguments: Sequence[str], stdin: str | None = None, holding: Sequence[int] = ()) -> str:
    """What uv printed. It and all that it starts keep the open files `holding` locked. Of uv's files only that of
    UV_CONFIG_FILE is read: a `target` would send packages away. Raises CalledProcessError and UserError."""
    words = [find_uv_bin(), "--no-progress", "--no-config", "--color=never", *arguments]
    return subprocess.run(
        words, input=stdin, capture_output=True, text=True, check=True, pass_fds=holding, preexec_fn=dies_with_parent()
    ).stdout


def forget(options: Sequence[str], packages: Iterable[str]) -> None:
    """Has uv's cache, told of by `options`, hand out no more files of packages. Raises CalledProcessError and UserError."""
    if names := sorted(packages):
        run_uv(["cache", "clean", *options, *names])
