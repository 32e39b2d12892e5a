"""The reports' commands, called in this process."""

import typer
from typer.testing import CliRunner

from holdfast.cli import compare, figures, leaderboard, listing, report, watch
from holdfast.errors import UserError

APP = typer.Typer(pretty_exceptions_enable=False)
for command in (report, compare, figures, leaderboard, watch, listing):
    command.register(APP)


def holdfast(*words):
    """What `holdfast WORDS` prints; a mistake is raised as the UserError that it is."""
    done = CliRunner().invoke(APP, [str(word) for word in words])
    if isinstance(done.exception, UserError):
        raise done.exception
    assert done.exit_code == 0, done.output + repr(done.exception)
    return done
