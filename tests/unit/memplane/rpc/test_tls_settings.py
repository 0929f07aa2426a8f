from pathlib import Path

import pytest

from memplane.rpc.certificates import TlsFiles
from memplane.rpc.tls_settings import (
    SERVER_SETTINGS,
    ChannelTls,
    ServerTls,
    channel_settings,
    is_loopback,
    refuse_clear,
)
from memplane.settings import BadConfig, Setting, Settings, read_settings

ALL = (Setting("listen", "127.0.0.1:1", "x"), *SERVER_SETTINGS, *channel_settings("control", "the control plane"))


def given(*flags: str) -> Settings:
    return read_settings(("test", "A test.", "TEST_"), ALL, flags, {})


def test_without_settings_all_is_in_clear() -> None:
    assert (ServerTls.of(given()), ChannelTls.of(given(), "control")) == (None, None)


def test_a_server_has_a_pair_and_may_ask_for_clients_certificates() -> None:
    pair = ("--tls-cert-file", "a.crt", "--tls-key-file", "a.key")
    assert ServerTls.of(given(*pair)) == ServerTls(TlsFiles(Path("a.crt"), Path("a.key")), require_client=False)
    asking = ServerTls.of(given(*pair, "--tls-client-ca-file", "ca.crt", "--tls-client-auth", "require"))
    files = TlsFiles(Path("a.crt"), Path("a.key"), Path("ca.crt"))
    assert asking == ServerTls(files, require_client=True)
    second = ServerTls.of(given(*pair, "--tls-client-ca-file", "ca.crt", "--mtls-listen", "0.0.0.0:7711"))
    assert second == ServerTls(files, require_client=False, mtls_listen="0.0.0.0:7711")


def test_a_channel_has_authorities_and_may_show_a_pair() -> None:
    flags = ("--control-tls-ca-file", "ca.crt", "--control-tls-server-name", "control.example")
    assert ChannelTls.of(given(*flags), "control") == ChannelTls(
        TlsFiles(authorities=Path("ca.crt")), "control.example"
    )
    pair = ("--control-tls-cert-file", "a.crt", "--control-tls-key-file", "a.key")
    showing = ChannelTls.of(given(*flags[:2], *pair), "control")
    assert showing == ChannelTls(TlsFiles(Path("a.crt"), Path("a.key"), Path("ca.crt")))


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--tls-cert-file", "a"), "tls-cert-file: goes with tls-key-file"),
        (("--tls-key-file", "a"), "tls-cert-file: goes with tls-key-file"),
        (("--tls-client-ca-file", "a"), "tls-cert-file: is required"),
        (("--tls-client-auth", "require"), "tls-cert-file: is required"),
        (("--mtls-listen", "127.0.0.1:7711"), "tls-cert-file: is required"),
        (("--mtls-listen", "7711"), "mtls-listen: '7711' is not HOST:PORT"),
        (("--tls-cert-file", "a", "--tls-key-file", "b", "--mtls-listen", "a:1"), "tls-client-ca-file: goes"),
        (("--tls-client-auth", "optional"), "tls-client-auth: 'optional' is not one of none, require"),
        (("--tls-cert-file", "a", "--tls-key-file", "b", "--tls-client-auth", "require"), "tls-client-ca-file: goes"),
        (("--tls-cert-file", "a", "--tls-key-file", "b", "--tls-client-ca-file", "c"), "tls-client-ca-file: goes"),
        (("--control-tls-key-file", "a"), "control-tls-cert-file: goes with control-tls-key-file"),
        (("--control-tls-cert-file", "a", "--control-tls-key-file", "b"), "control-tls-ca-file: is required"),
        (("--control-tls-server-name", "a"), "control-tls-ca-file: is required"),
    ],
)
def test_settings_that_do_not_go_together_are_named(flags: tuple[str, ...], says: str) -> None:
    def read() -> tuple[ServerTls | None, ChannelTls | None]:
        return ServerTls.of(given(*flags)), ChannelTls.of(given(*flags), "control")

    with pytest.raises(BadConfig) as caught:
        read()
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("address", "own"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("0.0.0.0:1", False),
        ("[::]:1", False),
        ("10.0.0.1:1", False),
        ("control:1", False),
        ("127.0.0.1.example:1", False),
        ("localhost.example:1", False),
    ],
)
def test_in_clear_only_this_machine_is_served_unless_asked_for(address: str, own: bool) -> None:
    assert is_loopback(address) is own
    refuse_clear(given("--listen", address, "--insecure", "on"), "listen", None)
    refuse_clear(given("--listen", address), "listen", ServerTls(TlsFiles(), require_client=False))
    if own:
        refuse_clear(given("--listen", address), "listen", None)
    else:
        with pytest.raises(BadConfig, match="in clear"):
            refuse_clear(given("--listen", address), "listen", None)
