import http.server
import io
import sys
import threading
import types
import zipfile
from datetime import date

import pytest

from catalog.importing.refresh import PricesUnavailableError, archive_url, archives, day_of, fetch
from tests.catalog.import_cases import SAMPLES


def packed(name, data):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, data)
    return buffer.getvalue()


@pytest.fixture
def server():
    """A local server of archives in gpuhunt's layout: paths to bytes; other paths are 404."""
    pages = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            page = pages.get(self.path)
            self.send_response(200 if page is not None else 404)
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/v3", pages
        running.shutdown()


def publish(pages, archive, version, data):
    pages[f"/v3/{archive}/version"] = version.encode()
    pages[f"/v3/{archive}/{version}/catalog.zip"] = packed(f"{archive}.csv", data)


def test_the_newest_archive_is_fetched_with_its_day(server):
    """The version names the file and, where it begins with one, the day."""
    url, pages = server
    data = (SAMPLES / "gpuhunt_lambdalabs.csv").read_bytes()
    publish(pages, "lambdalabs", "20261119-3", data)
    found = fetch(url, "lambdalabs", 5)
    assert (found.version, found.day, found.data) == ("20261119-3", date(2026, 11, 19), data)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda pages: pages.clear(), "404"),
        (lambda pages: pages.update({"/v3/aws/version": b"../../etc"}), "holds no version"),
        (lambda pages: pages.update({"/v3/aws/1/catalog.zip": b"not a zip"}), "no readable aws.csv"),
        (lambda pages: pages.update({"/v3/aws/1/catalog.zip": packed("x.csv", b"")}), "no readable aws.csv"),
    ],
)
def test_what_a_server_can_get_wrong(server, change, says):
    """A missing page, a strange version and a broken archive are said, with the address or the file."""
    url, pages = server
    publish(pages, "aws", "1", b"x")
    change(pages)
    with pytest.raises(PricesUnavailableError, match=says):
        fetch(url, "aws", 5)


def test_no_network():
    """A server that does not answer is named, with what else can be done."""
    with pytest.raises(PricesUnavailableError, match=r"cannot be reached.*catalog import"):
        fetch("http://127.0.0.1:9", "aws", 5)


def test_the_address_is_given_or_gpuhunts(monkeypatch):
    """Without an address that of the package gpuhunt is used; without the package the extra is named."""
    assert archive_url("http://here/v3/") == "http://here/v3"
    with pytest.raises(PricesUnavailableError, match="no web address"):
        archive_url("file:///etc")
    monkeypatch.setitem(sys.modules, "gpuhunt", None)
    with pytest.raises(PricesUnavailableError, match=r"pip install gpumix\[live\]"):
        archive_url(None)
    package, inner, module = (
        types.ModuleType(n) for n in ("gpuhunt", "gpuhunt._internal", "gpuhunt._internal.catalog")
    )
    module.CATALOG_URL = "https://archives.example/v3"
    for found in (package, inner, module):
        monkeypatch.setitem(sys.modules, found.__name__, found)
    assert archive_url(None) == "https://archives.example/v3"


def test_archives_have_names_of_their_own():
    """The catalog's lambda is the archive lambdalabs; all known ones by default."""
    assert archives(["lambda", "AWS", "lambdalabs"]) == ["lambdalabs", "aws"]
    assert {"aws", "azure", "gcp", "lambdalabs", "nebius", "oci", "runpod", "verda"} <= set(archives([]))


@pytest.mark.parametrize(
    ("version", "day"),
    [("20261119-3", date(2026, 11, 19)), ("2026-11-19", date(2026, 11, 19)), ("2", None), ("20261399", None)],
)
def test_days_of_versions(version, day):
    """A version that names no day leaves the date unknown."""
    assert day_of(version) == day
