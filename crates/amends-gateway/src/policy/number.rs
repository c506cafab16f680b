//! Numbers as policies know them. JSON has numbers that Cedar lacks: those are brought into its range, never dropped, so that no
//! condition on a number can be passed by one that is too large or too fine.

use serde_json::Number;

/// How many of Cedar's smallest decimal steps make one.
const STEPS: i64 = 10_000;

/// The whole number nearest to that one, within what a policy can compare.
pub(super) fn long(number: &Number) -> i64 {
    if let Some(whole) = number.as_i64() {
        return whole;
    }
    if number.is_u64() {
        return i64::MAX;
    }
    // `as` keeps to the range of its target.
    number.as_f64().unwrap_or(f64::MAX).round() as i64
}

/// The number as a decimal with four digits after the point. What is finer is rounded away from zero, and what is larger than all
/// decimals becomes the largest.
pub(super) fn decimal(number: &Number) -> String {
    written(steps(&number.to_string()))
}

/// Whether it has no part after the point and can be compared as it is.
pub(super) fn is_long(number: &Number) -> bool {
    number.as_i64().is_some() || number.is_u64()
}

fn steps(text: &str) -> i64 {
    let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let size = if let Some((_, exponent)) = digits.split_once(['e', 'E']) {
        // A number is written so where it is beyond all decimals, or below the smallest step.
        let nothing =
            digits.bytes().take_while(|byte| !byte.is_ascii_alphabetic()).all(|byte| matches!(byte, b'0' | b'.'));
        match (nothing, exponent.starts_with('-')) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => i64::MAX,
        }
    } else {
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let kept: String = part.chars().chain("0000".chars()).take(4).collect();
        let finer = part.bytes().skip(4).any(|byte| byte != b'0');
        let whole = whole.parse::<i64>().ok().and_then(|whole| whole.checked_mul(STEPS));
        let part = kept.parse::<i64>().unwrap_or_default() + i64::from(finer);
        whole.and_then(|whole| whole.checked_add(part)).unwrap_or(i64::MAX)
    };
    if negative { -size } else { size }
}

fn written(steps: i64) -> String {
    let sign = if steps < 0 { "-" } else { "" };
    let size = steps.unsigned_abs();
    let one = STEPS.unsigned_abs();
    format!("{sign}{}.{:04}", size / one, size % one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_decimal_is_what_was_written_and_never_smaller() {
        for (text, says) in [
            ("12.3", "12.3000"),
            ("12", "12.0000"),
            ("-0.5", "-0.5000"),
            ("0.00001", "0.0001"),
            ("1e-9", "0.0001"),
            ("0.0", "0.0000"),
            ("99.99999", "100.0000"),
            ("-99.99999", "-100.0000"),
            ("1e300", "922337203685477.5807"),
            ("-1e300", "-922337203685477.5807"),
            ("18446744073709551615", "922337203685477.5807"),
        ] {
            assert_eq!(decimal(&number(text)), says, "{text}");
        }
    }

    #[test]
    fn a_whole_number_stays_within_what_can_be_compared() {
        for (text, is) in [
            ("7", 7),
            ("-7", -7),
            ("7.0", 7),
            ("18446744073709551615", i64::MAX),
            ("-1e300", i64::MIN),
            ("1e300", i64::MAX),
        ] {
            assert_eq!(long(&number(text)), is, "{text}");
        }
        assert!(is_long(&number("7")) && !is_long(&number("7.5")));
    }
}
