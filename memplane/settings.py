"""How a plane reads its settings: flags, else the environment, else the configuration file, else defaults.

The planes' config.py alone use it.
"""

import argparse
import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SHA256 = re.compile(r"[0-9a-f]{64}")
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:]+\]|[^:\s]+):\d{1,5}")


ANNOUNCEMENTS = ("none", "text", "json")
"""What a plane may say on stdout once it serves; see `memplane.process.say_ready`."""


METRICS_HELP = "address of the Prometheus metrics, HOST:PORT, port 0 for any free one; none: no metrics"

PARENT = "parent-pid"
PARENT_HELP = "process that started this one: stop in order when it dies (Linux); 0: go on"


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

    def optional_address(self, name: str) -> str:
        """`host:port` as above; "" for the word none."""
        return "" if self._values[name] == "none" else self.address(name)

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

    def labels(self, name: str) -> dict[str, str]:
        """Names and values, such as `zone=a,rack=7`; empty when nothing is given."""
        pairs = [part.partition("=") for part in self._values[name].split(",") if part.strip()]
        found = {key.strip(): value.strip() for key, _, value in pairs}
        if len(found) != len(pairs) or not all(found) or not all(found.values()):
            raise BadConfig(f"{name}: {self._values[name]!r} is not NAME=VALUE,NAME=VALUE with each name once")
        return found

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """One of a few words."""
        if self._values[name] not in choices:
            raise BadConfig(f"{name}: {self._values[name]!r} is not one of {', '.join(choices)}")
        return self._values[name]


def suggestion(given: str, known: Iterable[str]) -> str:
    """What may have been meant by an unknown name, and else what there is, to end a message with."""
    names = list(known)
    near = difflib.get_close_matches(given, names, n=1)
    return f"; did you mean {near[0]}?" if near else f"; there are {', '.join(names)}"


def config_file_of(arguments: Sequence[str], environment: Mapping[str, str], prefix: str) -> Path | None:
    """The configuration file that flags or the environment name, if they do."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--config", default=environment.get(_variable(prefix, "config"), ""))
    given = parser.parse_known_args(arguments)[0].config
    return Path(given) if given else None


def read_settings(
    program: tuple[str, str, str],
    settings: Sequence[Setting],
    arguments: Sequence[str],
    environment: Mapping[str, str],
    section: tuple[str, Mapping[str, object]] = ("", {}),
) -> Settings:
    """The values of `settings`. `program` is (how it is started, what it is, the environment's prefix).

    `section` is a section of the configuration file: its name and keys, in which `-` is written `_`. `--help` and
    unknown flags end the process as argparse does.
    """
    name, description, prefix = program
    parser = argparse.ArgumentParser(
        prog=name,
        description=description,
        epilog=f"Every flag can be given in the environment: --data-dir as {prefix}DATA_DIR.",
    )
    in_file = _in_file(section, settings)
    for setting in settings:
        default = environment.get(_variable(prefix, setting.name), in_file.get(setting.name, setting.default))
        parser.add_argument(f"--{setting.name}", default=default, help=f"{setting.help} [{setting.default}]")
    given = vars(parser.parse_args(arguments))
    return Settings({setting.name: given[setting.name.replace("-", "_")] for setting in settings}, prefix)


def _in_file(section: tuple[str, Mapping[str, object]], settings: Sequence[Setting]) -> dict[str, str]:
    name, table = section
    known = {setting.name.replace("-", "_"): setting.name for setting in settings if setting.name != "config"}
    for key, value in table.items():
        if key not in known:
            raise BadConfig(f"{name}.{key}: there is no such key{suggestion(key, known)}")
        if not isinstance(value, str | int | float):
            raise BadConfig(f"{name}.{key}: is not a text or a number")
    return {known[key]: str(value) for key, value in table.items()}


def _variable(prefix: str, name: str) -> str:
    return prefix + name.replace("-", "_").upper()
