"""Fetches a card as the A2A SDK does, and checks its signature with the gateway's public key."""

import asyncio
import base64
import json
import pathlib
import sys

import httpx
from a2a.client import A2ACardResolver
from a2a.utils.signing import create_signature_verifier
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from google.protobuf.json_format import MessageToDict


async def main() -> None:
    name, _, key = pathlib.Path(sys.argv[2]).read_text().strip().split("+", 2)
    key = Ed25519PublicKey.from_public_bytes(base64.b64decode(key)[1:])

    def provide(kid, jku):
        assert kid == name, kid
        return key

    async with httpx.AsyncClient() as http:
        resolver = A2ACardResolver(http, sys.argv[1])
        card = await resolver.get_agent_card(signature_verifier=create_signature_verifier(provide, ["EdDSA"]))
        print(json.dumps(MessageToDict(card)))


asyncio.run(main())
