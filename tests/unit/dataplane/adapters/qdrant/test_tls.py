import datetime
import ipaddress
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.errors import BackendUnavailable
from memplane.settings import Secret
from tests.contract.index_suite import DIMENSION, deadline
from tests.unit.dataplane.adapters.qdrant.scripted import healthy, scripted_server


def self_signed() -> tuple[bytes, bytes]:
    """Key and certificate of 127.0.0.1, PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "qdrant")])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(begin).not_valid_after(begin + datetime.timedelta(days=36_500))
    builder = builder.add_extension(address, critical=False)
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return pem, builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


async def test_a_server_is_trusted_by_its_certificate_alone(tmp_path: Path) -> None:
    key, certificate = self_signed()
    trusted = tmp_path / "ca.pem"
    trusted.write_bytes(certificate)
    async with scripted_server(healthy(), grpc.ssl_server_credentials([(key, certificate)])) as url:
        options = QdrantOptions(url, api_key=Secret("key"), ca_file=trusted, timeout_s=5)
        index = await QdrantVectorIndex.open(options, "model-1", DIMENSION)
        assert "KEY_IN_CLEAR" not in {problem.code for problem in (await index.examine(deadline())).problems}
        await index.close()
        for wrong in (QdrantOptions(url, timeout_s=1), QdrantOptions(url.replace("https", "http"), timeout_s=1)):
            with pytest.raises(BackendUnavailable):
                await QdrantVectorIndex.open(wrong, "model-1", DIMENSION)
