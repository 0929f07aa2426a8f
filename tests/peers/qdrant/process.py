"""The peer as a child of the test run."""

import sys
from dataclasses import dataclass
from pathlib import Path

import grpc
from qdrant_client import grpc as wire

from tests.servers.process import ServerProcess, free_port, new_folder

VERSION = "1.20.0"
"""What the peer says it is: the version whose interface it speaks."""
PROJECT = Path(__file__).resolve().parents[3]


@dataclass
class QdrantPeer:
    """One peer with its own folder and port.

    `stop` and `kill` keep the data, `start` serves them again on the same port, `close` removes them.
    """

    process: ServerProcess
    port: int

    @classmethod
    def create(cls, api_key: str = "", version: str = VERSION) -> "QdrantPeer":
        """Serves an empty peer."""
        folder, port = new_folder("qdrant"), free_port()
        data = folder / "data"
        data.mkdir()
        command = [sys.executable, "-m", "tests.peers.qdrant.server", str(data), str(port), version, api_key]
        process = ServerProcess("the Qdrant peer", folder, command, environment={"PYTHONPATH": str(PROJECT)})
        peer = cls(process, port)
        with process.closed_on_failure():
            peer.start()
        return peer

    @property
    def url(self) -> str:
        """For QdrantOptions."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Serves what is in the folder."""
        self.process.start(self._serves, within_s=60)

    def stop(self) -> None:
        """Ends it in good order."""
        self.process.stop()

    def kill(self) -> None:
        """kill -9."""
        self.process.kill()

    def close(self) -> None:
        """Ends it and removes its data."""
        self.process.close()

    def _serves(self) -> bool:
        with grpc.insecure_channel(f"127.0.0.1:{self.port}") as channel:
            try:
                root = wire.QdrantStub(channel)  # type: ignore[no-untyped-call]  # generated
                root.HealthCheck(wire.HealthCheckRequest(), timeout=1.0)
            except grpc.RpcError as error:
                return error.code() is grpc.StatusCode.UNAUTHENTICATED
        return True
