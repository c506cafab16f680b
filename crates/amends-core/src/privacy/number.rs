//! What a shape alone cannot say of a number: its checksum and its range.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::ops::Range;

/// How many digits the number of a card has at most.
const CARD_DIGITS_MAX: usize = 19;

/// The places of card numbers: digits, in groups or not, with an issuer's beginning and the right last digit.
///
/// Every group of digits may begin one, so that a number beside a card does not hide it. From each, at most as many
/// digits are looked at as a card has.
pub(super) fn cards(text: &str) -> Vec<Range<usize>> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begins = bytes[at].is_ascii_digit() && (at == 0 || !is_word(bytes[at - 1]));
        match begins.then(|| card_at(bytes, at)).flatten() {
            Some(end) => {
                found.push(at..end);
                at = end;
            }
            None => at += 1,
        }
    }
    found
}

/// The end of the longest card number that begins there.
fn card_at(bytes: &[u8], start: usize) -> Option<usize> {
    let mut digits = [0; CARD_DIGITS_MAX];
    let mut count = 0;
    let mut longest = None;
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        if byte.is_ascii_digit() {
            if count == CARD_DIGITS_MAX {
                break;
            }
            digits[count] = byte - b'0';
            count += 1;
            at += 1;
            let ends = bytes.get(at).is_none_or(|next| !is_word(*next));
            if ends && is_card(&digits[..count]) {
                longest = Some(at);
            }
        } else if matches!(byte, b' ' | b'-') && bytes.get(at + 1).is_some_and(u8::is_ascii_digit) {
            at += 1;
        } else {
            break;
        }
    }
    longest
}

/// Whether a card's number is as long as nearly all are. Longer and shorter ones are too often the ids of something else.
pub(super) fn is_usual_card(card: &str) -> bool {
    (14..=16).contains(&card.bytes().filter(u8::is_ascii_digit).count())
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_card(digits: &[u8]) -> bool {
    let begins = |count: usize| digits.iter().take(count).fold(0_u32, |number, digit| number * 10 + u32::from(*digit));
    let (two, three, four) = (begins(2), begins(3), begins(4));
    let issued = match digits.len() {
        13 => digits[0] == 4,
        14 => matches!(three, 300..=305) || matches!(two, 36 | 38 | 39),
        15 => matches!(two, 34 | 37),
        16 => {
            digits[0] == 4
                || matches!(two, 35 | 51..=55 | 65)
                || matches!(four, 2221..=2720 | 6011)
                || matches!(three, 644..=649)
        }
        17..=19 => digits[0] == 4 || two == 62 || two == 65,
        _ => false,
    };
    issued && luhn(digits)
}

fn luhn(digits: &[u8]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, u32::from(*digit) * 2) {
            (0, _) => u32::from(*digit),
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether three groups of digits are a number that the United States give to a person.
pub(super) fn is_social_security(found: &str) -> bool {
    let mut groups = found.split('-');
    let (area, group, serial) = (groups.next(), groups.next(), groups.next());
    let given = area.is_some_and(|area| !matches!(area, "000" | "666"));
    given && group != Some("00") && serial != Some("0000")
}

/// Whether letters and digits are the number of an account: their remainder is 1.
pub(super) fn is_iban(found: &str) -> bool {
    let signs: Vec<u8> = found.bytes().filter(|byte| *byte != b' ').collect();
    if !(15..=34).contains(&signs.len()) {
        return false;
    }
    let moved = signs[4..].iter().chain(&signs[..4]);
    let rest = moved.fold(0_u32, |rest, sign| match sign {
        b'0'..=b'9' => (rest * 10 + u32::from(sign - b'0')) % 97,
        _ => (rest * 100 + u32::from(sign.to_ascii_uppercase() - b'A') + 10) % 97,
    });
    rest == 1
}

/// Whether four numbers are an address that is not everybody's own.
pub(super) fn is_ipv4(found: &str) -> bool {
    found.parse::<Ipv4Addr>().is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
}

/// Whether groups of hexadecimal digits are an address that is not everybody's own.
pub(super) fn is_ipv6(found: &str) -> bool {
    let parsed = found.parse::<Ipv6Addr>();
    let groups = found.split(':').filter(|group| !group.is_empty()).count();
    groups >= 3 && parsed.is_ok_and(|address| !address.is_loopback() && !address.is_unspecified())
}

/// Whether two numbers are a latitude and a longitude.
pub(super) fn is_place(found: &str) -> bool {
    let within = |number: Option<&str>, most: f64| {
        number.and_then(|number| number.trim().parse::<f64>().ok()).is_some_and(|number| number.abs() <= most)
    };
    let mut numbers = found.split(',');
    within(numbers.next(), 90.0) && within(numbers.next(), 180.0)
}
