#!/usr/bin/env python3
"""Checks a proof that `amends prove` printed, with nothing of Amends: python3 check_proof.py PROOF KEY

KEY is the text in the file that ends with `.sign.pub`, or such a file. Needs the package `cryptography`.
Exits with 0 if the proof holds, and with 1 and a reason if it does not.
"""

import base64
import hashlib
import json
import pathlib
import sys

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


class NotProven(Exception):
    pass


def need(holds, why):
    if not holds:
        raise NotProven(why)


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


def read_key(text):
    """NAME+ID+KEY, as C2SP signed-note has it."""
    name, key_id, key = text.strip().split("+", 2)
    key = base64.b64decode(key, validate=True)
    need(key[:1] == b"\x01" and len(key) == 33, "the key is not one of Ed25519")
    expected = sha256(name.encode(), b"\n", key)[:4]
    need(expected.hex() == key_id, "the key's id is not its own")
    return name, expected, Ed25519PublicKey.from_public_bytes(key[1:])


def open_checkpoint(note, key):
    """The size and the root that were signed."""
    name, key_id, public = key
    end = note.rindex("\n\n")
    text, signatures = note[: end + 1], note[end + 2 :]
    for line in signatures.splitlines():
        dash, signer, signature = line.split(" ")
        signature = base64.b64decode(signature, validate=True)
        if dash == "—" and signer == name and signature[:4] == key_id:
            public.verify(signature[4:], text.encode())
            lines = text.splitlines()
            return int(lines[1]), base64.b64decode(lines[2], validate=True)
    raise NotProven("the checkpoint is not signed with the key")


def root_of_inclusion(leaf, place, size, path):
    """RFC 9162, section 2.1.3.2."""
    need(place < size, "the entry lies behind the checkpoint")
    node, last = place, size - 1
    for beside in path:
        need(last > 0, "the path is too long")
        if node % 2 or node == last:
            leaf = sha256(b"\x01", beside, leaf)
            while node % 2 == 0 and node:
                node, last = node // 2, last // 2
        else:
            leaf = sha256(b"\x01", leaf, beside)
        node, last = node // 2, last // 2
    need(last == 0, "the path is too short")
    return leaf


def check(proof, key):
    need(proof["format"] == "amends/proof/1", "the form is not known")
    link, seq = bytes.fromhex(proof["before"]), proof["seq"]
    for event in proof["events"]:
        need(json.loads(event)["seq"] == seq, f"event {seq} is not there")
        link = sha256(link, event.encode())
        seq += 1
    entry = proof["entry"]
    need(link.hex() == entry["head"] and entry["seq"] == seq - 1, "the events do not lead to the head that was logged")
    need(proof["events"], "there is no event")
    text = f"amends/log/1\n{proof['session']}\n{entry['seq']}\n{entry['head']}\n"
    size, root = open_checkpoint(proof["checkpoint"], key)
    path = [bytes.fromhex(hash) for hash in proof["path"]]
    computed = root_of_inclusion(sha256(b"\x00", text.encode()), entry["place"], size, path)
    need(computed == root, "the entry is not in the log that was signed")
    return size


def main(proof_file, key):
    if pathlib.Path(key).is_file():
        key = pathlib.Path(key).read_text()
    try:
        proof = json.loads(pathlib.Path(proof_file).read_text())
        size = check(proof, read_key(key))
    except (NotProven, InvalidSignature, KeyError, TypeError, ValueError, IndexError) as error:
        print(f"NOT proven: {error or 'the signature does not fit'}")
        return 1
    print(f"proven: event {proof['seq']} of {proof['session']} is in the log that was signed at {size} entries")
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2]))
