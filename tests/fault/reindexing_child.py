"""Rebuilds the vector index of a folder for the next model in small steps. Run by test_reindex_kill."""

import asyncio
import sys
from pathlib import Path

from memplane.client.maintenance import progress_of
from tests.integration.upkeep_plane import NEW, OLD, upkeep_plane


async def main(folder: Path) -> None:
    async with upkeep_plane(folder, [OLD, NEW], page_size=20) as plane, plane.maintenance() as client:
        operation = await client.reindex("VECTOR", NEW.model)
        async for state in client.follow(operation, pause_s=0.01):
            sys.stdout.write(f"{progress_of(state).enqueued_count}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
