"""The `memplane` command and its sub-commands."""

import click

import memplane
from memplane.cli.context import context
from memplane.cli.control import control
from memplane.cli.data import data
from memplane.cli.demo import demo
from memplane.cli.doctor import doctor
from memplane.cli.evaluate import evaluate
from memplane.cli.fleet import fleet
from memplane.cli.forget import forget
from memplane.cli.get import get
from memplane.cli.health import health
from memplane.cli.history import history
from memplane.cli.keys import keys
from memplane.cli.list import list_memories
from memplane.cli.maintenance import indexes
from memplane.cli.migrate import migrate
from memplane.cli.operation import operation
from memplane.cli.policy import policy
from memplane.cli.queue import queue
from memplane.cli.search import search
from memplane.cli.session import connection_options
from memplane.cli.up import up
from memplane.cli.update import update
from memplane.cli.write import write

COMMANDS = (
    up,
    demo,
    control,
    data,
    migrate,
    policy,
    keys,
    fleet,
    doctor,
    health,
    indexes,
    queue,
    write,
    operation,
    search,
    context,
    get,
    list_memories,
    update,
    forget,
    history,
    evaluate,
)


class InOrder(click.Group):
    """A group that lists its commands in the order in which one comes to need them."""

    def list_commands(self, _context: click.Context, /) -> list[str]:
        """Names in the order of `commands`."""
        return list(self.commands)


@click.group(
    cls=InOrder,
    commands=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog="""\b
Start here:
  memplane demo                                     see everything once, and stop
  memplane up                                       start both planes and print a key
  memplane write dept.sales "Acme renews in March"  in another terminal, with MEMPLANE_API_KEY set
  memplane search dept.sales "When does Acme renew?"

Exit codes: 0 done, 1 a call failed or was refused, 2 wrong usage.""",
)
@click.version_option(memplane.__version__, prog_name="memplane")
@connection_options
def cli() -> None:
    """MemPlane: memory for LLM agents, governed by policy.

    The data plane writes and finds memories; the control plane holds the policy that decides what is kept.
    """


def main() -> None:
    """Entry point of the console script."""
    cli(prog_name="memplane")


if __name__ == "__main__":
    main()
