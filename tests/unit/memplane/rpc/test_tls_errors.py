import pytest

from memplane.rpc.tls_errors import tls_problem

PICK_FIRST = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: "
ROUND_ROBIN = "connections to all backends failing; last error: UNKNOWN: ipv4:127.0.0.1:1: "


@pytest.mark.parametrize("begin", [PICK_FIRST, ROUND_ROBIN])
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("Tls handshake failed: CERTIFICATE_VERIFY_FAILED: certificate has expired", "its certificate has expired"),
        ("Tls handshake failed: CERTIFICATE_VERIFY_FAILED: unable to get local issuer", "none of the authorities"),
        ("Custom verification check failed: Hostname Verification Check failed.", "for another name"),
        ("Tls handshake failed: WRONG_VERSION_NUMBER", "does not speak TLS"),
        ("Socket closed", "may want TLS"),
    ],
)
def test_what_tls_has_to_do_with_a_failed_connection_is_said(begin: str, words: str, says: str) -> None:
    assert says in tls_problem(begin + words)


@pytest.mark.parametrize("details", [PICK_FIRST + "Connection refused", "Socket closed", "no such memory", ""])
def test_what_has_nothing_to_do_with_it_is_not_called_a_problem_of_tls(details: str) -> None:
    assert tls_problem(details) == ""
