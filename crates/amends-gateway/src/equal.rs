//! What makes two payloads equal.
//!
//! Reading JSON keeps of a number what a double or 64 bits can hold. Two payments that differ in a later digit are two payments, so
//! such digits count too.

use amends_ledger::exactly;
use serde::Serialize;

/// How many digits every double can be told from every other by. Whoever writes more means them.
const DIGITS_MAX: usize = 17;

/// What two payloads have in common if and only if they say the same: the payload in its canonical form, and the numbers in its text that
/// have more digits than reading keeps.
pub(crate) fn form(payload: &impl Serialize, text: &str) -> Vec<u8> {
    let mut form = exactly(payload);
    let mut long = long_numbers(text);
    // Members come in any order.
    long.sort_unstable();
    for number in long {
        // A line break is in no canonical form.
        form.push(b'\n');
        form.extend_from_slice(number.as_bytes());
    }
    form
}

/// The numbers of a JSON text that have more digits than a double.
fn long_numbers(text: &str) -> Vec<&str> {
    let (bytes, mut found, mut at) = (text.as_bytes(), Vec::new(), 0);
    while at < bytes.len() {
        match bytes[at] {
            b'"' => at = after_string(bytes, at),
            b'-' | b'0'..=b'9' => {
                let long = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
                let end = at + bytes[at..].iter().take_while(|byte| long(byte)).count();
                found.extend(text.get(at..end).filter(|number| digits(number) > DIGITS_MAX));
                at = end;
            }
            _ => at += 1,
        }
    }
    found
}

/// Where a string that begins there is over.
fn after_string(bytes: &[u8], from: usize) -> usize {
    let mut at = from + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    at
}

/// The digits of a number that count: those before its exponent, from the first that is not 0.
fn digits(number: &str) -> usize {
    let before = number.split(['e', 'E']).next().unwrap_or_default();
    before.bytes().filter(u8::is_ascii_digit).skip_while(|digit| *digit == b'0').count()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn of(text: &str) -> Vec<u8> {
        form(&serde_json::from_str::<Value>(text).unwrap(), text)
    }

    #[test]
    fn payloads_are_equal_whatever_the_order_and_the_spaces() {
        for (one, other) in [
            (r#"{"a":1,"b":[2]}"#, r#"{ "b" : [2.0], "a": 1e0 }"#),
            (r#"{"a":0.1,"b":3.141592653589793}"#, r#"{"b":3.141592653589793,"a":0.10}"#),
            (
                r#"{"a":1731726337000123457,"b":123456789012345678901}"#,
                r#"{"b":123456789012345678901, "a":1731726337000123457}"#,
            ),
            (r#"{"a":0.00000000000000000001}"#, r#"{"a":1e-20}"#),
            (
                r#"{"a":"12345678901234567890 \" 12345678901234567890"}"#,
                r#"{"a": "12345678901234567890 \" 12345678901234567890"}"#,
            ),
        ] {
            assert_eq!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn payloads_that_differ_in_a_late_digit_are_not() {
        for (one, other) in [
            ("[1731726337000123456]", "[1731726337000123457]"),
            ("[9007199254740992]", "[9007199254740993]"),
            ("[-9007199254740992]", "[-9007199254740993]"),
            ("[123456789012345678901234567890]", "[123456789012345678901234567891]"),
            ("[0.1000000000000000001]", "[0.1000000000000000002]"),
            (r#"["1\\",123456789012345678901]"#, r#"["1\\",123456789012345678902]"#),
        ] {
            assert_ne!(of(one), of(other), "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_json_ends() {
        for text in ["\"", "\"\\", "-", "1e", "\"é\\", "é1234567890123456789é"] {
            let _ = long_numbers(text);
        }
    }
}
