"""What every command shares: whom to call, with which key, how to print, and how failures end."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from memplane.cli import config
from memplane.cli.output import Output
from memplane.client import AdminClient, ClientTls, InvalidValue, MemPlaneClient, RpcError
from memplane.rpc.certificates import BadCertificate

T = TypeVar("T")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class Session:
    """The options that every command takes. Those given after the command's name win.

    Attributes:
        target: `host:port` of the data plane; empty: none was named.
        control: `host:port` of the control plane.
        api_key: Who calls; empty: nobody in particular.
        as_json: True when stdout carries JSON and nothing else.
        tls_ca: File of the authorities that are trusted; empty: calls go in clear.
        tls_cert: File of the certificate to show; empty: none.
        tls_key: File of its key.
        tls_server_name: Name in the planes' certificates; empty: the host that is called.
    """

    target: str = ""
    control: str = config.DEFAULT_CONTROL
    api_key: str = ""
    as_json: bool = False
    tls_ca: str = ""
    tls_cert: str = ""
    tls_key: str = ""
    tls_server_name: str = ""

    @property
    def out(self) -> Output:
        """Where results and notes go."""
        return Output(self.as_json)

    @property
    def data_address(self) -> str:
        """`host:port` of the data plane: the one that was named, else the default."""
        return self.target or config.DEFAULT_TARGET

    @property
    def tls(self) -> ClientTls | None:
        """How to call; None: in clear. A usage error where the options do not go together."""
        if bool(self.tls_cert) != bool(self.tls_key):
            raise click.UsageError("--tls-cert goes with --tls-key; give both, or neither")
        if not self.tls_ca and (self.tls_cert or self.tls_server_name):
            raise click.UsageError("--tls-ca is required with the other options of TLS")
        if not self.tls_ca:
            return None
        return ClientTls(self.tls_ca, self.tls_cert or None, self.tls_key or None, self.tls_server_name)

    def memory(self) -> MemPlaneClient:
        """A client of the data plane; to be entered in the running event loop."""
        return MemPlaneClient(self.data_address, self.api_key, tls=self.tls)

    def admin(self) -> AdminClient:
        """A client of the control plane; to be entered in the running event loop."""
        return AdminClient(self.control, self.api_key, tls=self.tls)


pass_session = click.make_pass_decorator(Session, ensure=True)


class CallFailed(click.ClickException):
    """A call that failed, in one line. Exit code 1."""

    def __init__(self, error: RpcError) -> None:
        super().__init__(error.sentence())


def run(work: Coroutine[Any, Any, T]) -> T:
    """The result of async work.

    Raises:
        CallFailed: A call failed.
        click.ClickException: The files of the TLS options cannot be used.
        click.UsageError: An argument cannot be expressed in the contract.
    """
    try:
        return asyncio.run(work)
    except RpcError as error:
        raise CallFailed(error) from None
    except InvalidValue as error:
        raise click.UsageError(str(error)) from None
    except BadCertificate as error:
        raise click.ClickException(str(error)) from None


def connection_options(command: Command) -> Command:
    """Adds `--target`, `--control`, `--api-key`, those of TLS and `--json`."""
    options = (
        click.option(
            "--target",
            type=Address(),
            metavar="HOST:PORT",
            envvar=config.TARGET_VARIABLE,
            show_envvar=True,
            help=f"Data plane.  [default: {config.DEFAULT_TARGET}]",
            **_kept("target"),
        ),
        click.option(
            "--control",
            type=Address(),
            metavar="HOST:PORT",
            envvar=config.CONTROL_VARIABLE,
            show_envvar=True,
            help=f"Control plane.  [default: {config.DEFAULT_CONTROL}]",
            **_kept("control"),
        ),
        click.option(
            "--api-key",
            metavar="KEY",
            envvar=config.API_KEY_VARIABLE,
            show_envvar=True,
            help="Who calls; better in the environment, where other users do not see it.",
            **_kept("api_key"),
        ),
        *(_tls_option(*each) for each in _TLS_OPTIONS),
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command


_TLS_OPTIONS = (
    ("ca", "FILE", config.TLS_CA_VARIABLE, "Authorities (PEM) that sign the planes' certificates; without: in clear."),
    ("cert", "FILE", config.TLS_CERT_VARIABLE, "Certificate (PEM) to show to the planes."),
    ("key", "FILE", config.TLS_KEY_VARIABLE, "Its private key (PEM)."),
    ("server-name", "NAME", config.TLS_SERVER_NAME_VARIABLE, "Name in their certificates, where it is not the host's."),
)


def _tls_option(name: str, metavar: str, variable: str, text: str) -> Callable[[Command], Command]:
    kept = _kept(f"tls_{name.replace('-', '_')}")
    return click.option(f"--tls-{name}", metavar=metavar, envvar=variable, show_envvar=True, help=text, **kept)


def json_option(command: Command) -> Command:
    """Adds `--json`."""
    option = click.option(
        "--json", "as_json", is_flag=True, help="Print JSON on stdout and nothing else.", **_kept("as_json")
    )
    return option(command)


def config_option(command: Command) -> Command:
    """Adds `--config`."""
    path = click.Path(exists=True, dir_okay=False, path_type=Path)
    return click.option("--config", type=path, help="Configuration file (TOML) of the planes and their stores.")(
        command
    )


def logs_option(command: Command) -> Command:
    """Adds `--logs`."""
    return click.option("--logs", is_flag=True, help="Show the planes' logs on stderr.")(command)


def _kept(name: str) -> dict[str, Any]:
    """Click settings of an option whose value is kept in the Session rather than passed on.

    The option stands before and after a command's name. The environment is heard at the first place only: at the
    second it would win over an option given at the first.
    """

    def keep(context: click.Context, _option: click.Parameter, value: Any) -> None:
        session = context.ensure_object(Session)
        repeated = context.parent is not None and context.get_parameter_source(name) is ParameterSource.ENVIRONMENT
        if value and not repeated:
            setattr(session, name, value)

    return {"expose_value": False, "callback": keep}


class Address(click.ParamType[str]):
    """`HOST:PORT`, or a target of gRPC's other schemes as it is."""

    name = "HOST:PORT"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The address; a usage error says what would be right."""
        host, colon, port = str(value).rpartition(":")
        if value and "/" not in value and not value.startswith("unix:"):
            if not colon or not host or not port.isascii() or not port.isdecimal():
                self.fail(f"{value!r} is not HOST:PORT, such as {config.DEFAULT_TARGET}", param, ctx)
            if not 1 <= int(port) <= 65_535:
                self.fail(f"{value!r} has no port from 1 to 65535", param, ctx)
        return str(value)


class Instant(click.ParamType[datetime]):
    """An ISO 8601 date or time; UTC where it names no offset."""

    name = "TIME"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """The instant; a usage error says what would be right."""
        if isinstance(value, datetime):
            return value
        try:
            found = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not an ISO 8601 time such as 2026-11-30T09:00:00+01:00", param, ctx)
        return found if found.tzinfo else found.replace(tzinfo=UTC)


class Choice(click.Choice[str]):
    """Names of an enum of the contract, in any case, without the prefix."""

    def __init__(self, *names: str) -> None:
        super().__init__(names, case_sensitive=False)


INSTANT = Instant()
KINDS = Choice("FACT", "PREFERENCE", "EPISODE", "INSTRUCTION", "TOOL_RESULT", "DOCUMENT", "SUMMARY")
LAYERS = Choice("WORKING", "SHORT_TERM", "LONG_TERM", "KNOWLEDGE")
POOLS = Choice("PRIVATE", "SHARED")
SOURCES = Choice("HUMAN", "API", "USER", "AGENT", "LLM", "EXTERNAL_DOC")
STATES = Choice("ACTIVE", "PENDING_REVIEW", "QUARANTINED", "COLD", "SUPERSEDED", "SOFT_DELETED")
SENSITIVITIES = Choice("PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED")
