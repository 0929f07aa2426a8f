"""The planes' configuration file: TOML, one section a part, secrets taken from the environment by `${NAME}`.

TOML because it is read strictly by the standard library: a key given twice, a word where a number belongs or an
unclosed quote is an error with its line, and there are no aliases to expand.
"""

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

from memplane.settings import BadConfig, suggestion

SECTIONS = (
    "control",
    "data",
    "record_store",
    "vector_index",
    "text_index",
    "redis",
    "cache",
    "queue",
    "embedder",
    "next_embedder",
)
MAX_BYTES = 1024 * 1024
_VARIABLE = re.compile(r"\$(?:\$|\{([^}]*)\})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Table = Mapping[str, object]
"""A section's keys and values as TOML gives them."""


def read_config_file(path: Path, environment: Mapping[str, str], used: Collection[str] = SECTIONS) -> dict[str, Table]:
    """The sections in `used` of a file, `${NAME}` in texts replaced from the environment and `$$` by `$`.

    Variables of other sections need not be set, so that a control plane holds no secret of the stores.

    Raises BadConfig, which names file and place, for what cannot be read, an unknown section or an unset variable.
    """
    try:
        raw = path.read_bytes()
        if len(raw) > MAX_BYTES:
            raise BadConfig(f"config: {path} has {len(raw)} bytes; at most {MAX_BYTES} are read")
        document = tomllib.loads(raw.decode())
    except OSError as error:
        raise BadConfig(f"config: {path} cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadConfig(f"config: {path} is not TOML: {error}") from error
    for name, table in document.items():
        if name not in SECTIONS:
            raise BadConfig(f"config: {path}: no section is called {name!r}{suggestion(name, SECTIONS)}")
        if not isinstance(table, dict):
            raise BadConfig(f"config: {path}: {name} is a section: write [{name}] and its keys below")
    return {
        name: {key: _filled(value, f"{name}.{key}", environment) for key, value in table.items()}
        for name, table in document.items()
        if name in used
    }


def _filled(value: object, place: str, environment: Mapping[str, str]) -> object:
    if isinstance(value, list):
        return [_filled(each, place, environment) for each in value]
    if isinstance(value, dict):
        return {key: _filled(each, f"{place}.{key}", environment) for key, each in value.items()}
    if not isinstance(value, str):
        return value

    def replacement(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return "$"
        if _NAME.fullmatch(name) is None:
            raise BadConfig(f"{place}: ${{{name}}} names no variable; write $$ for a dollar sign")
        if name not in environment:
            raise BadConfig(f"{place}: the environment has no {name}, which ${{{name}}} asks for")
        return environment[name]

    return _VARIABLE.sub(replacement, value)
