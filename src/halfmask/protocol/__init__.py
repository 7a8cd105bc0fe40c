"""The same query without a trusted center: cells, a relay, and nobody who sees the rows."""

from importlib.util import find_spec

from halfmask.errors import EngineUnavailableError

if find_spec("cryptography") is None or find_spec("msgspec") is None:
    raise EngineUnavailableError("What cells need", "pip install 'halfmask[cells]'")
