"""The peer's collections and aliases, in a folder that survives a kill -9."""

import base64
import itertools
import json
import shutil
import threading
from dataclasses import dataclass, field
from pathlib import Path

from qdrant_client import grpc
from qdrant_edge import EdgeShard

from tests.peers.qdrant.edge_types import config_of


class NotFound(Exception):
    """There is no such collection or alias; the text is what a server says."""


class AlreadyExists(Exception):
    """The name is taken; the text is what a server says."""


class BadInput(Exception):
    """The request is invalid; the text is what a server says."""


@dataclass
class Collection:
    """One collection: how it was made, its shard, and the indexes of its payload. Hold `lock` while using it."""

    folder: Path
    made: grpc.CreateCollection
    shard: EdgeShard
    schema: dict[str, grpc.PayloadSchemaInfo] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        return int(self.made.vectors_config.params.size)


class Catalogue:
    """What the server holds. Thread-safe; every change is on disk when a method returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._collections: dict[str, Collection] = {}
        self._aliases: dict[str, str] = {}
        self._load()

    def get(self, name: str) -> Collection:
        """The collection of a name or alias."""
        with self._lock:
            found = self._collections.get(self._aliases.get(name, name))
        if found is None:
            raise NotFound(f"Not found: Collection `{name}` doesn't exist!")
        return found

    def names(self) -> list[str]:
        """Of every collection."""
        with self._lock:
            return sorted(self._collections)

    def aliases(self) -> dict[str, str]:
        """Alias to collection."""
        with self._lock:
            return dict(self._aliases)

    def create(self, request: grpc.CreateCollection) -> None:
        """Makes a collection."""
        name = request.collection_name
        with self._lock:
            if name in self._collections or name in self._aliases:
                raise AlreadyExists(f"Wrong input: Collection `{name}` already exists!")
            folder = next(path for number in itertools.count() if not (path := self._folder / f"c{number}").exists())
            folder.mkdir()
            shard = EdgeShard.create(str(folder), config_of(request))
            self._collections[name] = Collection(folder, request, shard)
            self._save()

    def delete(self, name: str) -> bool:
        """Removes a collection and its aliases; False when there is none."""
        with self._lock:
            collection = self._collections.pop(name, None)
            if collection is None:
                return False
            self._aliases = {alias: to for alias, to in self._aliases.items() if to != name}
            self._save()
        with collection.lock:
            collection.shard.close()
            shutil.rmtree(collection.folder)
        return True

    def change_aliases(self, actions: list[grpc.AliasOperations]) -> None:
        """Applies all of them or none."""
        with self._lock:
            aliases = dict(self._aliases)
            for action in actions:
                self._change(aliases, action)
            self._aliases = aliases
            self._save()

    def save_schema(self, collection: Collection, name: str, info: grpc.PayloadSchemaInfo) -> None:
        """Notes an index of a payload field."""
        with self._lock:
            collection.schema[name] = info
            self._save()

    def close(self) -> None:
        """Flushes everything."""
        with self._lock:
            for collection in self._collections.values():
                collection.shard.close()

    def _change(self, aliases: dict[str, str], action: grpc.AliasOperations) -> None:
        name = action.WhichOneof("action")
        if name == "create_alias":
            create = action.create_alias
            if create.collection_name not in self._collections:
                raise NotFound(f"Not found: Collection `{create.collection_name}` doesn't exist!")
            if create.alias_name in self._collections:
                raise AlreadyExists(f"Wrong input: Collection `{create.alias_name}` already exists!")
            aliases[create.alias_name] = create.collection_name
        elif name == "delete_alias":
            if aliases.pop(action.delete_alias.alias_name, None) is None:
                raise NotFound(f"Not found: Alias {action.delete_alias.alias_name} does not exists!")
        elif name == "rename_alias":
            old = aliases.pop(action.rename_alias.old_alias_name, None)
            if old is None:
                raise NotFound(f"Not found: Alias {action.rename_alias.old_alias_name} does not exists!")
            aliases[action.rename_alias.new_alias_name] = old
        else:
            raise BadInput("Wrong input: an alias operation without action")

    @property
    def _file(self) -> Path:
        return self._folder / "catalogue.json"

    def _save(self) -> None:
        state = {
            "aliases": self._aliases,
            "collections": {
                name: {
                    "folder": collection.folder.name,
                    "made": _text(collection.made.SerializeToString()),
                    "schema": {key: _text(info.SerializeToString()) for key, info in collection.schema.items()},
                }
                for name, collection in self._collections.items()
            },
        }
        draft = self._file.with_suffix(".next")
        draft.write_text(json.dumps(state))
        draft.replace(self._file)

    def _load(self) -> None:
        if not self._file.exists():
            return
        state = json.loads(self._file.read_text())
        self._aliases = state["aliases"]
        for name, kept in state["collections"].items():
            folder = self._folder / kept["folder"]
            made = grpc.CreateCollection.FromString(base64.b64decode(kept["made"]))
            schema = {
                key: grpc.PayloadSchemaInfo.FromString(base64.b64decode(info)) for key, info in kept["schema"].items()
            }
            self._collections[name] = Collection(folder, made, EdgeShard.load(str(folder)), schema)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
