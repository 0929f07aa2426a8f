"""How a plane reads its settings: flags, else the environment, else defaults. The planes' config.py alone use it."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}")


ANNOUNCEMENTS = ("none", "text", "json")
"""What a plane may say on stdout once it serves; see `memplane.process.say_ready`."""


class Secret(str):
    """A text that prints as stars."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class BadConfig(Exception):
    """A setting is missing or wrong; the text names it and what would be right."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A flag `--name`, also `PREFIX_NAME` of the environment, with its default ("" for none) and help."""

    name: str
    default: str
    help: str


class Settings:
    """The values given for some settings; readers below check one each and raise BadConfig."""

    def __init__(self, values: Mapping[str, str], prefix: str):
        self._values = values
        self._prefix = prefix

    def text(self, name: str) -> str:
        """The value as it is."""
        return self._values[name]

    def path(self, name: str) -> Path | None:
        """A path; None when empty."""
        return Path(self._values[name]) if self._values[name] else None

    def required_path(self, name: str) -> Path:
        """A path that must be there."""
        return Path(self._required(name))

    def address(self, name: str) -> str:
        """`host:port`, port 0 for any free one."""
        value = self._values[name]
        if _ADDRESS.fullmatch(value) is None or int(value.rpartition(":")[2]) > 65_535:
            raise BadConfig(f"{name}: {value!r} is not HOST:PORT, such as 127.0.0.1:7700")
        return value

    def sha256(self, name: str) -> Secret | None:
        """A SHA-256 in hex; None when empty."""
        value = self._values[name]
        if value and _SHA256.fullmatch(value) is None:
            raise BadConfig(f"{name}: not a SHA-256 of 64 hex digits in lower case; give the hash, not the key")
        return Secret(value) if value else None

    def secret(self, name: str) -> Secret:
        """A secret text that must be there."""
        return Secret(self._required(name))

    def _required(self, name: str) -> str:
        if not self._values[name]:
            raise BadConfig(
                f"{name}: is required; give --{name}, or {_variable(self._prefix, name)} in the environment"
            )
        return self._values[name]

    def number(self, name: str, least: float, most: float) -> float:
        """A number in a range."""
        try:
            value = float(self._values[name])
        except ValueError:
            value = float("nan")
        if not least <= value <= most:
            raise BadConfig(f"{name}: {self._values[name]!r} is not a number from {least:g} to {most:g}")
        return value

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of a few words."""
        if self._values[name] not in choices:
            raise BadConfig(f"{name}: {self._values[name]!r} is not one of {', '.join(choices)}")
        return self._values[name]


def read_settings(
    program: tuple[str, str, str],
    settings: Sequence[Setting],
    arguments: Sequence[str],
    environment: Mapping[str, str],
) -> Settings:
    """The values of `settings`. `program` is (how it is started, what it is, the environment's prefix).

    `--help` and unknown flags end the process as argparse does.
    """
    name, description, prefix = program
    parser = argparse.ArgumentParser(
        prog=name,
        description=description,
        epilog=f"Every flag can be given in the environment: --data-dir as {prefix}DATA_DIR.",
    )
    for setting in settings:
        default = environment.get(_variable(prefix, setting.name), setting.default)
        parser.add_argument(f"--{setting.name}", default=default, help=f"{setting.help} [{setting.default}]")
    given = vars(parser.parse_args(arguments))
    return Settings({setting.name: given[setting.name.replace("-", "_")] for setting in settings}, prefix)


def _variable(prefix: str, name: str) -> str:
    return prefix + name.replace("-", "_").upper()
