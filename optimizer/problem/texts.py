"""Text of files, or a finding that says why there is none."""

from pathlib import Path as FilePath

from optimizer.errors import Finding, ProblemFileError

MAX_FILE_BYTES = 16 * 2**20


def read_file(path: FilePath, hint_if_missing: str = "gpumix init writes a problem file to start from") -> bytes:
    """Read a file, or say why not, and what to write instead."""
    try:
        with path.open("rb") as stream:
            return stream.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        message, hint = "no such file", hint_if_missing
    except IsADirectoryError:
        message, hint = "this is a directory", "name a file in it"
    except (OSError, ValueError) as error:
        message, hint = f"cannot be read: {getattr(error, 'strerror', None) or error}", ""
    raise ProblemFileError([Finding(message, str(path), hint=hint)])


def decode(raw: bytes, name: str) -> str:
    """Text of a UTF-8 file, or a finding about the first byte that is not."""
    if len(raw) > MAX_FILE_BYTES:
        message = f"larger than {MAX_FILE_BYTES // 2**20} MiB"
        raise ProblemFileError([Finding(message, name, hint="not a problem file?")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        column = error.start - (raw.rfind(b"\n", 0, error.start) + 1) + 1
        message = f"byte 0x{raw[error.start]:02x} is not UTF-8"
        raise ProblemFileError([Finding(message, name, line, column, hint="save the file as UTF-8")]) from None
