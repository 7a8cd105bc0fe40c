"""``halfmask relay``: the server between cells that sees ciphertexts only."""

from __future__ import annotations

import click

from halfmask.cli import show
from halfmask.cli.options import as_json


@click.command("relay")
@click.option("--store", type=click.Path(dir_okay=False), required=True, help="The relay's file.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True)
@click.option("--certificate", type=click.Path(exists=True), help="PEM; listens with TLS.")
@click.option("--certificate-key", type=click.Path(exists=True), help="Its key, PEM.")
@click.option("--issuer", help="Take queries of this issuer's askers only: its public key, in hex.")
@click.option(
    "--patience",
    type=float,
    default=30.0,
    show_default=True,
    help="Seconds after which work is given to another cell.",
)
@as_json
def command(
    store: str,
    host: str,
    port: int,
    certificate: str | None,
    certificate_key: str | None,
    issuer: str | None,
    patience: float,
    as_json: bool,
) -> None:
    """Relay messages between cells until interrupted; may be killed and started again.

    Example: halfmask relay --store relay.sqlite --port 8765
    """
    from halfmask.protocol.parties.relay import Relay
    from halfmask.protocol.store.relay_sqlite import RelayStore
    from halfmask.protocol.transport.http import RelayServer

    public = _public(issuer) if issuer else None
    relay = Relay(RelayStore(store), patience=patience, issuer=public)
    server = RelayServer(relay, host, port, certificate=certificate, key=certificate_key)
    if as_json:
        show.document("relay", {"address": server.address})
    show.say(f"Relaying on {server.address}; stop with Ctrl-C.")
    server.serve()


def _public(text: str) -> bytes:
    from halfmask.errors import ParameterError

    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if len(found) != 32:
        raise ParameterError("issuer", "...", "64 hexadecimal digits, as cells keys prints them")
    return found
