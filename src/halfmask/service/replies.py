"""Replies: documents, errors in their one shape, and files that are removed once they are sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.responses import FileResponse, Response

from halfmask.errors import (
    BusyError,
    EngineError,
    HalfmaskError,
    InputError,
    MissingError,
    PrivacyError,
    RefusedError,
    TooLargeError,
)
from halfmask.failure import failure

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import Receive, Scope, Send

# Whose move it is now, in HTTP's words; the first that fits.
STATUS: tuple[tuple[type[HalfmaskError], int], ...] = (
    (RefusedError, 403),
    (MissingError, 404),
    (BusyError, 409),
    (TooLargeError, 413),
    (InputError, 400),
    (PrivacyError, 409),
    (EngineError, 503),
)
# A report runs its own scripts, but as a stranger: it reaches neither the page nor the network.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts"
)
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".toml": "application/toml; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
}


def reply(document: dict[str, Any], status: int = 200) -> Response:
    """A JSON document."""
    text = json.dumps(document, default=str, allow_nan=False)
    return Response(text, status, media_type="application/json")


def refusal(error: BaseException) -> Response:
    """An error as the one document that may be shown of it."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    return reply(failure(error).to_dict(), status)


class _Sent(FileResponse):
    """A file that is done with once its reply has ended, also where a part of it was asked for."""

    def __init__(self, path: Path, done: Callable[[Path], None], **told: Any) -> None:
        super().__init__(path, **told)
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a reader who has gone, or asks for a part that is not there, ends it too."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._done(Path(self.path))


def file_reply(path: Path, *, download: bool, done: Callable[[Path], None]) -> Response:
    """A file that is shown or saved, and removed once it is sent."""
    return _Sent(
        path,
        done,
        media_type=_MEDIA[path.suffix],
        filename=path.name,
        content_disposition_type="attachment" if download else "inline",
        headers={"Content-Security-Policy": REPORT_POLICY},
    )
