//! New bytes from kept ones: bitten, spliced, repeated, and with other numbers and words.

use crate::chance::Chance;
use crate::corpus::Kept;
use crate::json;

/// The longest bytes that are made.
const BYTES_MAX: usize = 16 * 1024;

/// Words that somebody acts on.
const WORDS: [&str; 66] = [
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "\\",
    "\\u0000",
    "\\ud800",
    "\n",
    "\r\n",
    "\r",
    " ",
    "\t",
    "\0",
    "\u{feff}",
    "\u{202e}",
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\"\"",
    "jsonrpc",
    "\"2.0\"",
    "id",
    "method",
    "params",
    "result",
    "error",
    "code",
    "data",
    "name",
    "arguments",
    "_meta",
    "amends/key",
    "amends/session",
    "amends/deadline",
    "progressToken",
    "isError",
    "content",
    "structuredContent",
    "resultType",
    "status",
    "retry_after",
    "charter_version",
    "certainty",
    "not_sent",
    "in_doubt",
    "$ref",
    "#",
    "allOf",
    "anyOf",
    "properties",
    "pattern",
    "data: ",
    "event: ",
    "effect",
    "keyed",
    "key",
    "playbook",
    "compensation",
    "happened",
    "size(",
    ".map(x, x)",
];
/// Numbers at which arithmetic goes wrong, if it does.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "-0",
    "1.5",
    "1e309",
    "-1e-400",
    "255",
    "256",
    "429",
    "503",
    "65536",
    "4294967296",
    "9007199254740993",
    "18446744073709551615",
    "99999999999999999999999",
];

/// Bytes made from the kept ones.
pub(crate) fn mutated(kept: &[Kept], chance: &mut Chance) -> Vec<u8> {
    let mut bytes = any(kept, chance).to_vec();
    for _ in 0..=chance.below(5) {
        let other = any(kept, chance);
        if chance.below(3) == 0
            && let Some(changed) = json::changed(&bytes, other, chance)
        {
            bytes = changed;
        } else {
            bite(&mut bytes, other, chance);
        }
        bytes.truncate(BYTES_MAX);
    }
    bytes
}

fn any<'a>(kept: &'a [Kept], chance: &mut Chance) -> &'a [u8] {
    &kept[chance.below(kept.len())].bytes
}

fn bite(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let at = chance.below(bytes.len() + 1);
    let end = (at + 1 + chance.small(8)).min(bytes.len());
    match chance.below(10) {
        0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
        1 if at < bytes.len() => bytes[at] = chance.number() as u8,
        2 => bytes.truncate(at),
        3 => drop(bytes.drain(at..end)),
        4 => {
            let piece = bytes[at..end].to_vec();
            let to = chance.below(bytes.len() + 1);
            bytes.splice(to..to, piece);
        }
        5 => {
            let from = chance.below(other.len() + 1);
            bytes.truncate(at);
            bytes.extend_from_slice(&other[from..]);
        }
        6 => {
            let from = chance.below(other.len() + 1);
            let piece = &other[from..(from + 1 + chance.below(64)).min(other.len())];
            bytes.splice(at..at, piece.iter().copied());
        }
        7 => swap_number(bytes, at, chance),
        8 => {
            let word = chance.one_of(&WORDS).repeat(1 + chance.small(9));
            bytes.splice(at..at, word.into_bytes());
        }
        _ => drop(bytes.splice(at..at, chance.one_of(&WORDS).bytes())),
    }
}

/// Puts another number in place of the next one.
fn swap_number(bytes: &mut Vec<u8>, from: usize, chance: &mut Chance) {
    let Some(start) = bytes[from..].iter().position(u8::is_ascii_digit).map(|found| from + found) else {
        return;
    };
    let length = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    bytes.splice(start..start + length, chance.one_of(&NUMBERS).bytes());
}
