"""Current prices from archives in gpuhunt's layout (dstackai/gpuhunt 0.1.34).

`<url>/<provider>/version` names the newest version, `<url>/<provider>/<version>/catalog.zip` holds `<provider>.csv`.
Where the archives are by default, the package gpuhunt knows (extra `live`); nothing here is needed without a network.
"""

import io
import re
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from catalog.errors import CatalogError
from catalog.importing.tables import LARGEST_FILE_BYTES
from catalog.names_of_nodes import read_facts

_VERSION = re.compile(r"[A-Za-z0-9._-]{1,64}")


class PricesUnavailableError(CatalogError):
    """Prices that cannot be fetched, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A provider's price file as it was published: its version, and the day that the version names, if it does."""

    version: str
    day: date | None
    data: bytes


def archive_url(url: str | None) -> str:
    """The address of the archives: the one given, else gpuhunt's own.

    Raises
    ------
    PricesUnavailableError
        If there is none, or it is no web address.
    """
    address = (url or _address_of_gpuhunt()).rstrip("/")
    if urllib.parse.urlsplit(address).scheme not in ("http", "https"):
        msg = f'"{address}" is no web address; write http:// or https://'
        raise PricesUnavailableError(msg)
    return address


def _address_of_gpuhunt() -> str:
    try:
        from gpuhunt._internal.catalog import CATALOG_URL  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        msg = (
            "where current prices are is known to the package gpuhunt, which is not installed: "
            "pip install gpumix[live], or give --url (GPUMIX_PRICES_URL)"
        )
        raise PricesUnavailableError(msg) from None
    return str(CATALOG_URL)


def archives(providers: Sequence[str]) -> list[str]:
    """Names of the archives of these providers (all that are known for none)."""
    rows = [row for row in read_facts("providers.csv") if row["archive"] == "true"]
    if not providers:
        return [row["name"] for row in rows]
    by_provider = {row["provider"]: row["name"] for row in rows}
    return list(dict.fromkeys(by_provider.get(name.casefold(), name.casefold()) for name in providers))


def fetch(base_url: str, archive: str, timeout_s: float) -> Fetched:
    """The newest price file of a provider.

    Raises
    ------
    PricesUnavailableError
        If it cannot be reached, or is not what it should be.
    """
    if not _VERSION.fullmatch(archive):
        msg = f'"{archive}" is no provider name'
        raise PricesUnavailableError(msg)
    version = _get(f"{base_url}/{archive}/version", timeout_s, 1000).decode("utf-8", "replace").strip()
    if not _VERSION.fullmatch(version):
        msg = f"{base_url}/{archive}/version holds no version: {version[:60]!r}"
        raise PricesUnavailableError(msg)
    packed = _get(f"{base_url}/{archive}/{version}/catalog.zip", timeout_s, LARGEST_FILE_BYTES)
    return Fetched(version, day_of(version), _unpacked(packed, f"{archive}.csv"))


def day_of(version: str) -> date | None:
    """The day that a version such as `20261119-3` names."""
    digits = re.match(r"(\d{4})-?(\d{2})-?(\d{2})(?!\d)", version)
    try:
        return date(*map(int, digits.groups())) if digits else None
    except ValueError:
        return None


def _get(url: str, timeout_s: float, most_bytes: int) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=timeout_s) as answer:
            data: bytes = answer.read(most_bytes + 1)
    except urllib.error.HTTPError as error:
        error.close()
        msg = f"{url}: the server says {error.code} {error.reason}"
        raise PricesUnavailableError(msg) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        msg = f"{url}: cannot be reached ({reason}); try again with a network, or import a file with catalog import"
        raise PricesUnavailableError(msg) from None
    if len(data) > most_bytes:
        msg = f"{url}: larger than {most_bytes:,} bytes"
        raise PricesUnavailableError(msg)
    return data


def _unpacked(packed: bytes, name: str) -> bytes:
    try:
        with zipfile.ZipFile(io.BytesIO(packed)) as archive, archive.open(name) as file:
            data = file.read(LARGEST_FILE_BYTES + 1)
    except (zipfile.BadZipFile, KeyError, OSError, NotImplementedError, RuntimeError, EOFError, ValueError) as error:
        msg = f"catalog.zip holds no readable {name} ({error})"
        raise PricesUnavailableError(msg) from None
    if len(data) > LARGEST_FILE_BYTES:
        msg = f"{name} is larger than {LARGEST_FILE_BYTES:,} bytes"
        raise PricesUnavailableError(msg)
    return data
