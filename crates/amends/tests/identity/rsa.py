"""Makes an RSA key and signs with it, for an issuer in the tests: nothing but the standard library.

Prints `{"n": …, "e": …}` in base64url. Then, for each line `ALG BASE64URL`, prints the signature of those bytes.
"""

import base64
import hashlib
import json
import secrets
import sys

# What goes before a hash in a PKCS #1 v1.5 signature.
PREFIXES = {
    "sha256": "3031300d060960864801650304020105000420",
    "sha384": "3041300d060960864801650304020205000430",
    "sha512": "3051300d060960864801650304020305000440",
}


def is_prime(n: int) -> bool:
    for small in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37):
        if n % small == 0:
            return n == small
    odd, twos = n - 1, 0
    while odd % 2 == 0:
        odd, twos = odd // 2, twos + 1
    for _ in range(24):
        x = pow(secrets.randbelow(n - 3) + 2, odd, n)
        if x in (1, n - 1):
            continue
        for _ in range(twos - 1):
            x = x * x % n
            if x == n - 1:
                break
        else:
            return False
    return True


def prime(bits: int) -> int:
    while True:
        n = secrets.randbits(bits) | (3 << (bits - 2)) | 1
        if n % 65537 != 1 and is_prime(n):
            return n


def encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def mask(seed: bytes, length: int) -> bytes:
    made = b""
    while len(made) < length:
        made += hashlib.sha256(seed + (len(made) // 32).to_bytes(4, "big")).digest()
    return made[:length]


def pkcs1(message: bytes, name: str, length: int) -> bytes:
    inner = bytes.fromhex(PREFIXES[name]) + hashlib.new(name, message).digest()
    return b"\x00\x01" + b"\xff" * (length - len(inner) - 3) + b"\x00" + inner


def pss(message: bytes, bits: int) -> bytes:
    salt = secrets.token_bytes(32)
    length = (bits - 1 + 7) // 8
    digest = hashlib.sha256(b"\x00" * 8 + hashlib.sha256(message).digest() + salt).digest()
    block = b"\x00" * (length - 66) + b"\x01" + salt
    hidden = bytearray(a ^ b for a, b in zip(block, mask(digest, len(block)), strict=True))
    hidden[0] &= 0xFF >> (8 * length - (bits - 1))
    return bytes(hidden) + digest + b"\xbc"


def main() -> None:
    p, q = prime(1024), prime(1024)
    n, e = p * q, 65537
    d = pow(e, -1, (p - 1) * (q - 1))
    size = (n.bit_length() + 7) // 8
    print(json.dumps({"n": encode(n.to_bytes(size, "big")), "e": encode(e.to_bytes(3, "big"))}), flush=True)
    for line in sys.stdin:
        algorithm, text = line.split()
        message = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if algorithm.startswith("RS"):
            block = pkcs1(message, f"sha{algorithm[2:]}", size)
        else:
            block = pss(message, n.bit_length())
        print(encode(pow(int.from_bytes(block, "big"), d, n).to_bytes(size, "big")), flush=True)


main()
