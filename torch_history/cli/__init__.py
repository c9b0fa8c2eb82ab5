"""The command `torch-history`. Each command imports what it needs when it runs, so that help and refusals come at once."""

import errno
import gc
import resource
import sys

import click

from ..system.errors import UserError
from ..system.signals import say_stopped, stop_on_signals
from . import certify, explain, fit, fleet, kit, maintain, report, run, upgrade
from .output import refuse

SENTENCES_OF_ASV = ("UserError", "EnvironmentUnavailable")
"""Exceptions of asv's that are meant for a person; known by name, because importing asv takes longer than most commands."""

OURS = ("contract", "recorder", "torch_history")
"""What cannot be missing on a machine, so that it is a fault of ours if it is."""

LEAST_MEMORY = 2**30
"""Bytes of addresses that a command may need; with less, libraries of numbers wait for threads that never start."""

MORE_MEMORY = "End other programs, or allow more: `ulimit -v` says how many KiB a program may use here."

FORMER = {
    "calibrate": "it is `torch-history run --calibrate` now",
    "document": "`make document`, in a clone",
    **dict.fromkeys(("environment", "facts"), "the site shows them, and results/ has them (docs/results.md)"),
    "fleet check": "times are kept in a folder for each node, so nodes need not agree",
    "fleet collect": "`torch-history fleet run` and `torch-history fleet cancel` collect",
    **dict.fromkeys(("fleet plan", "fleet simulate"), "`torch-history fleet run --plan` forecasts"),
    "lock": "`make sync`, in a clone, pins packages, too",
    "metrics": "docs/own-workload.md lists them, and a file that names another is told which there are",
    "requirements": "`torch-history upgrade FILE` takes a file of requirements, too",
    "results": "`torch-history compare` without releases lists files of your own",
    "sync": "`make sync`, in a clone",
    **dict.fromkeys(("compare --environment", "regressions --environment", "run --environment"), "it is --lane now"),
    "check --history": "`torch-history check` looks at that, too",
    "fleet run --executor": "`torch-history run` measures on this machine",
    "fleet run --partition": "it is --sbatch partition=NAME now",
    "run --alongside": "`torch-history fleet run` measures on several processors",
    "run --explain": "`torch-history explain OLD NEW` afterwards, which the run offers",
    **dict.fromkeys(("run --launches", "fleet run --launches"), "it is --rounds now"),
    "run --releases": "name them without it",
}
"""Commands and options that are gone -> what took their place."""


class _Sentences(click.Group):
    """Turns what is meant for a person into one sentence on stderr and exit code 1, instead of a traceback."""

    def invoke(self, context: click.Context) -> object:
        try:
            return super().invoke(context)
        except (click.NoSuchOption, click.NoSuchCommand) as error:
            name = error.option_name if isinstance(error, click.NoSuchOption) else f"'{error.command_name}'"
            of = error.ctx.command_path.removeprefix(context.command_path) if error.ctx else ""
            if why := FORMER.get(f"{of} {name}".strip().replace("'", "")):
                gone = f"{'option' if name.startswith('-') else 'command'} {name}"
                raise click.UsageError(f"There is no {gone} any more: {why}.", error.ctx) from error
            raise
        except UserError as error:
            refuse(str(error))
        except ModuleNotFoundError as error:
            package = (error.name or "").partition(".")[0]
            if package in ("", *OURS):
                raise
            refuse(
                f"`{context.invoked_subcommand}` needs the package {package}, which {sys.executable} does not have. Install "
                "torch-history[compare], which brings it, or run this command elsewhere: what was measured can be copied."
            )
        except BrokenPipeError:
            raise
        except (MemoryError, OSError) as error:
            if isinstance(error, MemoryError) or error.errno == errno.ENOMEM:
                refuse(f"Memory ran out. {MORE_MEMORY}")
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            advice = " Make room there, then give the same command again." if full else ""
            refuse(f"{error.filename or 'A file'} cannot be read or written: {error.strerror or error}.{advice}")
        except KeyboardInterrupt:
            sys.exit(say_stopped())
        except BaseException as error:  # asv's EnvironmentUnavailable is no Exception
            if type(error).__module__.partition(".")[0] == "asv" and type(error).__name__ in SENTENCES_OF_ASV:
                refuse(str(error))
            raise


@click.group(cls=_Sentences, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="torch-history", message="%(prog)s %(version)s")
def main() -> None:
    """Which PyTorch release made your code slower, or made it use more memory?"""
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < LEAST_MEMORY:
        refuse(f"A command needs up to {LEAST_MEMORY // 2**20} MiB, and may use {allowed // 2**20} MiB. {MORE_MEMORY}")
    # A session in the background is asked to end by a signal, which must let it end the interpreters that it started.
    stop_on_signals()
    # What is read from results lives to the end: looking for garbage among it is a fifth of a command's time.
    gc.set_threshold(100_000, 20, 100)


for command in (
    *(run.run, upgrade.upgrade, fleet.fleet, explain.explain, fit.fit),
    *(certify.certify, kit.kit, report.publish, report.compare_stored, report.regressions),
    *(maintain.prune, maintain.check),
):
    main.add_command(command)
