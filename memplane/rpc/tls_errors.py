"""What gRPC's words for a connection that could not be made mean, where TLS is the matter."""

from typing import Final

_UNCONNECTED: Final = ("failed to connect to all addresses", "connections to all backends failing")
"""Of pick_first and of round_robin; without them an open connection was lost."""

_PROBLEMS: Final = (
    ("certificate has expired", "its certificate has expired"),
    ("certificate is not yet valid", "its certificate is not valid yet; is this machine's clock right?"),
    ("CERTIFICATE_VERIFY_FAILED", "none of the authorities given has signed its certificate"),
    ("Hostname Verification", "its certificate is for another name"),
    ("WRONG_VERSION_NUMBER", "it does not speak TLS on this port"),
    ("Socket closed", "it hung up; it may want TLS, or a certificate of ours that it accepts"),
)
"""The words of grpcio 1.85. A server that refuses a certificate just hangs up."""


def tls_problem(details: str) -> str:
    """What is wrong, from the details of a status; "": nothing about TLS."""
    if not details.startswith(_UNCONNECTED):
        return ""
    return next((problem for words, problem in _PROBLEMS if words in details), "")
