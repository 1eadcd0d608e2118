"""What may stand in `http:METHOD URL`, and which addresses are public."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.addresses import is_public_address
from app.domain.errors import InvalidInput
from app.domain.http_target import METHODS, HttpTarget, parse_http_target


@pytest.mark.parametrize(
    ("text", "method", "url"),
    [
        ("http:POST https://example.com/run", "POST", "https://example.com/run"),
        ("POST https://example.com/run", "POST", "https://example.com/run"),
        ("http:GET http://example.com", "GET", "http://example.com"),
        (
            "http:PUT  HTTP://Example.COM:65535/a%20b?c=d&e=%23",
            "PUT",
            "HTTP://Example.COM:65535/a%20b?c=d&e=%23",
        ),
        ("http:DELETE http://8.8.8.8/", "DELETE", "http://8.8.8.8/"),
        ("http:PATCH http://[2606:4700::1111]:8080/", "PATCH", "http://[2606:4700::1111]:8080/"),
        ("http:HEAD http://bücher.example/ü", "HEAD", "http://bücher.example/ü"),
        ("http:GET http://1password.com/", "GET", "http://1password.com/"),
        ("http:GET http://localhost.example.com/", "GET", "http://localhost.example.com/"),
    ],
)
def test_targets_that_may_be_saved(text: str, method: str, url: str) -> None:
    assert parse_http_target(text, allow_private=False) == HttpTarget(method, url)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("http:", "is not one of"),
        ("http:TRACE http://example.com/", "GET, POST, PUT, PATCH, DELETE, HEAD"),
        ("http:post http://example.com/", "is not one of"),
        ("http:http://example.com/", "write http:METHOD URL"),
        ("http:POST", "the URL is missing"),
        ("http:POST example.com/run", "begin with http:// or https://"),
        ("http:POST file:///etc/passwd", "begin with http:// or https://"),
        ("http:POST gopher://example.com/", "begin with http:// or https://"),
        ("http:POST //example.com/", "begin with http:// or https://"),
        ("http:POST http:///run", "no host"),
        ("http:POST http://:80/run", "no host"),
        ("http:POST http://user@example.com/", "user or password"),
        ("http:POST http://user:secret@example.com/", "user or password"),
        ("http:POST http://example.com:0/", "from 1 to 65535"),
        ("http:POST http://example.com:65536/", "1 to 65535"),
        ("http:POST http://example.com:http/", "1 to 65535"),
        ("http:POST http://[::1/", "cannot be read"),
        ("http:POST http://example.com/a b", "%20"),
        ("http:POST http://example.com/a\r\nX-Header: 1", "percent-encode"),
        ("http:POST http://exam\tple.com/", "percent-encode"),
        ("http:POST http://example.com/\0", "percent-encode"),
        ("http:POST http://example.com\\@127.0.0.1/", "percent-encode"),
        ("http:POST http://example.com/\ud800", "percent-encode"),
        ("http:POST http://example.com/#part", "%23"),
    ],
)
def test_unusable_targets_are_refused_with_a_remedy(text: str, remedy: str) -> None:
    for allow_private in (False, True):
        with pytest.raises(InvalidInput) as caught:
            parse_http_target(text, allow_private=allow_private)
        assert caught.value.pointer == "/execution_handler"
        assert remedy in caught.value.detail
        caught.value.detail.encode()  # the message itself can be sent


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1.", "10.1.2.3", "169.254.169.254", "[::1]", "[::ffff:169.254.169.254]",
     "[fd00:ec2::254]", "localhost", "LocalHost.", "api.localhost", "0.0.0.0"],  # noqa: S104 - to refuse
)  # fmt: skip
def test_private_hosts_are_refused_unless_allowed(host: str) -> None:
    text = f"http:POST http://{host}:9000/deploy"
    with pytest.raises(InvalidInput, match="ONTHEDOT_ALLOW_PRIVATE_TARGETS"):
        parse_http_target(text, allow_private=False)
    assert parse_http_target(text, allow_private=True).method == "POST"


@pytest.mark.parametrize(
    "host", ["127.1", "2130706433", "0x7f.1", "0x7f000001", "0177.0.0.1", "1.2.3.4.5", "256.1.1.1"]
)
def test_half_written_addresses_are_refused_always(host: str) -> None:
    for allow_private in (False, True):
        with pytest.raises(InvalidInput, match="not a full IP address"):
            parse_http_target(f"http:GET http://{host}/", allow_private=allow_private)


@settings(deadline=None)
@given(st.text(max_size=60), st.sampled_from(METHODS))
def test_any_text_is_a_target_or_invalid_input(text: str, method: str) -> None:
    for url in (text, f"http://{text}", f"http://example.com/{text}"):
        try:
            target = parse_http_target(f"http:{method} {url}", allow_private=False)
        except InvalidInput as error:
            error.detail.encode()
        else:
            assert target.url == url.strip(" ")


def test_a_target_is_named_without_its_query() -> None:
    assert str(HttpTarget("GET", "https://example.com/a?token=secret")) == "GET https://example.com/a"


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "2606:4700::1111",
     "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "2002:808:808::1"],
)  # fmt: skip
def test_public_addresses(address: str) -> None:
    assert is_public_address(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.255.255.255", "::1",  # loopback
        "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "fc00::1", "fd00::1", "fec0::1",  # private
        "169.254.169.254", "fe80::1", "fe80::1%eth0",  # link-local
        "0.0.0.0", "0.1.2.3", "::",  # noqa: S104 - unspecified
        "240.0.0.1", "255.255.255.255", "100::1", "4000::1",  # reserved
        "224.0.0.1", "239.255.255.255", "ff02::1",  # multicast
        "100.64.0.1", "100.127.255.255", "100.100.100.200",  # carrier NAT
        "192.0.0.1", "192.0.0.192", "192.88.99.1", "198.18.0.1", "168.63.129.16",  # for protocols and clouds
        "192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1",  # documentation
        "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:100.64.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1",
        "64:ff9b::10.0.0.1", "64:ff9b:1::808:808", "2002:7f00:1::", "2002:a00:1::1", "2001:0:5ef5:79fd::1",
        "", "localhost", "127.1", "0177.0.0.1", "1.2.3.4 ", "١٢٧.0.0.1",  # no addresses
    ],
)  # fmt: skip
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public_address(address)


@settings(deadline=None)
@given(st.ip_addresses(v=4))
def test_a_wrapped_ipv4_address_is_as_public_as_itself(address: object) -> None:
    public = is_public_address(str(address))
    assert is_public_address(f"::ffff:{address}") == public
    assert is_public_address(f"64:ff9b::{address}") == public
