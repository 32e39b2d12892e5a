"""The command line: thin. Heavy imports are inside the commands, so that `--help` is quick."""

from __future__ import annotations

import functools
import gc
import os
import sys
from typing import Annotated

import typer
import typer.core
import typer.main

from holdfast import registry
from holdfast.errors import RunError, UserError, printable
from holdfast.version import __version__

app = typer.Typer(
    name="holdfast",
    help="Continual learning of vision and language, measured.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # boxes take half of 80 columns
    context_settings={"help_option_names": ["-h", "--help"]},
)

INTERRUPTED = 130


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


@functools.cache
def _register() -> None:
    """Add all commands, once."""
    from holdfast.cli import (
        bench,
        cache,
        claims,
        compare,
        data,
        export,
        features,
        figures,
        imports,
        leaderboard,
        listing,
        papers,
        plan,
        pretrain,
        report,
        run,
        tune,
        verify,
        watch,
    )

    for group in (
        run,
        plan,
        tune,
        claims,
        listing,
        report,
        compare,
        export,
        figures,
        leaderboard,
        imports,
        watch,
        verify,
        data,
        features,
        papers,
        pretrain,
        cache,
        bench,
    ):
        group.register(app)
    for family in registry.families():
        if (own := registry.part(family, "commands")) is not None:
            own.register(app)


@functools.cache
def command_line() -> typer.core.TyperGroup:
    """All commands as one object, for pages and checks that list them."""
    _register()
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return group


def main() -> None:
    """Run the command line. Exit status: 0 done, 1 a run failed, 2 the call or the data was wrong, 130 interrupted."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy is imported; PyTorch's threads: see --threads
    from holdfast import seldom  # noqa: F401

    try:
        _register()
        app()
    except UserError as error:
        fail(str(error), 2)
    except RunError as error:
        fail(str(error), 1)
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # the reader of our output is gone: `holdfast list | head`
            sys.stderr.close()
            sys.exit(0)
        fail(f"{error.filename or 'standard output'}: {error.strerror}", 1)
    except KeyboardInterrupt:
        fail("stopped", INTERRUPTED)
    except SystemExit as end:  # typer turns Ctrl-C into this, silently
        if isinstance(getattr(end.__context__, "__cause__", None), KeyboardInterrupt):
            fail("stopped", INTERRUPTED)
        raise
    finally:
        gc.freeze()  # the process ends: what it holds needs no search for cycles


def fail(sentence: str, status: int) -> None:
    """Print an error message and exit."""
    typer.echo(f"holdfast: {printable(sentence)}", err=True)
    sys.exit(status)
