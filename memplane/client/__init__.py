"""The async Python client of both planes.

async with MemPlaneClient("127.0.0.1:7701", api_key=key) as client:
    await client.write("dept.sales", "Acme renews in March", source="USER")
    answer = await client.search("dept.sales", "When does Acme renew?")
"""

from memplane.client.admin import AdminClient
from memplane.client.convert import InvalidValue
from memplane.client.errors import RpcError
from memplane.client.memory import MemPlaneClient, write_request
from memplane.client.operations import written
from memplane.client.tls import ClientTls

__all__ = ["AdminClient", "ClientTls", "InvalidValue", "MemPlaneClient", "RpcError", "write_request", "written"]
