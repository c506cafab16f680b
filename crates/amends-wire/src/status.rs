//! What a status means: one table for HTTP answers and for problem details alike.

use amends_core::{Certainty, Code, Contract, EffectKind};

/// What a status and a code of the upstream's own mean for an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meaning {
    /// What went wrong.
    pub code: Code,
    /// What it proves of the effect.
    pub certainty: Certainty,
}

/// Upstreams' own words for the situations of an idempotency key, compared exactly after [`normal`].
const IN_FLIGHT: [&str; 8] = [
    "idempotency_key_in_flight",
    "idempotency_key_in_use",
    "idempotency_in_progress",
    "key_in_flight",
    "in_flight",
    "request_in_progress",
    "request_in_flight",
    "concurrent_request",
];
const REUSED: [&str; 5] = [
    "idempotency_key_reused",
    "idempotency_key_mismatch",
    "idempotency_error",
    "key_reused",
    "idempotent_parameter_mismatch",
];
/// `already_exists` is not among them: what exists may be somebody else's.
const PROCESSED: [&str; 6] = [
    "idempotency_key_processed",
    "key_processed",
    "already_processed",
    "request_already_processed",
    "duplicate_request",
    "already_done",
];
/// Words for "the resource is in use by another": nothing about our own request.
const BUSY: [&str; 3] = ["resource_busy", "resource_locked", "locked"];

/// The meaning of a status, with the upstream's own code where it gave one.
///
/// A status that by its meaning rejects the request proves that nothing was done. One that asks to come back, or tells of
/// the upstream's own trouble, proves nothing unless the contract takes its word.
pub fn meaning(status: u16, word: Option<&str>, contract: &Contract) -> Meaning {
    let word = word.map(normal);
    let word = word.as_deref();
    let code = match status {
        409 => match word.and_then(key_code) {
            Some(code) => code,
            None if word.is_some_and(|word| BUSY.contains(&word)) => Code::ResourceBusy,
            // The IETF draft on idempotency keys: 409 means that the first request is still being worked on.
            None if contract.effect == EffectKind::Keyed => Code::KeyInFlight,
            None => Code::ActionError,
        },
        422 => word.and_then(key_code).unwrap_or(Code::InputInvalid),
        other => code(other),
    };
    let certainty = match code {
        Code::KeyInFlight => Certainty::InDoubt,
        Code::AlreadyProcessed => Certainty::Processed,
        Code::KeyReused => Certainty::NotProcessed,
        _ if rejects(status) || contract.rejects_before_effect.contains(&status) => Certainty::NotProcessed,
        _ => Certainty::InDoubt,
    };
    Meaning { code, certainty }
}

/// The code for an upstream's own word about an idempotency key, from a closed list.
pub fn key_code(word: &str) -> Option<Code> {
    let word = normal(word);
    let word = word.as_str();
    if IN_FLIGHT.contains(&word) {
        Some(Code::KeyInFlight)
    } else if REUSED.contains(&word) {
        Some(Code::KeyReused)
    } else if PROCESSED.contains(&word) {
        Some(Code::AlreadyProcessed)
    } else {
        None
    }
}

/// The code of a status whose meaning does not depend on more.
fn code(status: u16) -> Code {
    match status {
        400 | 411 | 413 | 414 | 416 | 417 | 422 | 431 => Code::InputInvalid,
        401 | 402 | 403 | 407 | 451 | 511 => Code::Forbidden,
        404 | 410 => Code::NotFound,
        307 | 308 | 405 | 406 | 415 | 421 | 426 | 501 | 505 => Code::MissingCapability,
        408 | 504 => Code::ExecutionTimeout,
        412 | 428 => Code::EvidenceStale,
        423 => Code::ResourceBusy,
        425 | 429 => Code::RateLimited,
        500..=599 => Code::Provider5xx,
        _ => Code::ActionError,
    }
}

/// Whether a status by its meaning rejects the request before anything is done.
fn rejects(status: u16) -> bool {
    matches!(
        status,
        307 | 308
            | 400..=407
            | 410..=417
            | 421
            | 422
            | 426
            | 428
            | 431
            | 451
            | 501
            | 505
            | 511
    )
}

/// A word in lower case, with dashes and blanks as underscores.
fn normal(word: &str) -> String {
    word.chars().take(64).map(|c| if c == '-' || c == ' ' { '_' } else { c.to_ascii_lowercase() }).collect()
}

/// How long a `Retry-After` header asks to wait: seconds, or the time until an HTTP date. `now_ms` is milliseconds since
/// 1970.
///
/// ```
/// use amends_wire::status::retry_after_ms;
///
/// assert_eq!(retry_after_ms("7", 0), Some(7_000));
/// assert_eq!(retry_after_ms("Thu, 01 Jan 1970 00:01:00 GMT", 10_000), Some(50_000));
/// assert_eq!(retry_after_ms("soon", 0), None);
/// ```
pub fn retry_after_ms(header: &str, now_ms: u64) -> Option<u64> {
    let header = header.trim();
    if !header.is_empty() && header.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(header.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1000));
    }
    Some(date_ms(header)?.saturating_sub(now_ms))
}

/// An HTTP date in its preferred form, `Sun, 06 Nov 1994 08:49:37 GMT`, in milliseconds since 1970.
fn date_ms(text: &str) -> Option<u64> {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = text.split_once(", ")?;
    let mut parts = rest.split(' ');
    let day = parts.next()?.parse::<u64>().ok().filter(|day| (1..=31).contains(day))?;
    let month = parts.next()?;
    let month = MONTHS.iter().position(|known| *known == month)? as u64 + 1;
    let year = parts.next()?.parse::<u64>().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut clock = parts.next()?.split(':');
    if parts.next()? != "GMT" || parts.next().is_some() {
        return None;
    }
    let mut unit = |max: u64| clock.next()?.parse::<u64>().ok().filter(|n| *n <= max);
    let (hour, minute, second) = (unit(23)?, unit(59)?, unit(60)?);
    // Days since 1970 in the Gregorian calendar, with the year begun in March so that the leap day comes last.
    let (shifted, from_march) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400 + (153 * from_march + 2) / 5 + day - 1;
    let days = days.checked_sub(719_468)?;
    Some((((days * 24 + hour) * 60 + minute) * 60 + second) * 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contract(effect: EffectKind) -> Contract {
        let mut contract = Contract::undeclared(1000, 1000, 1000);
        contract.effect = effect;
        contract
    }

    #[test]
    fn a_conflict_is_read_by_its_own_word_and_by_the_contract() {
        let of = |word, effect| {
            let meaning = meaning(409, word, &contract(effect));
            (meaning.code, meaning.certainty)
        };
        assert_eq!(of(Some("Idempotency-Key-In-Flight"), EffectKind::Write), (Code::KeyInFlight, Certainty::InDoubt));
        assert_eq!(of(Some("already processed"), EffectKind::Write), (Code::AlreadyProcessed, Certainty::Processed));
        assert_eq!(of(None, EffectKind::Keyed), (Code::KeyInFlight, Certainty::InDoubt));
        assert_eq!(of(None, EffectKind::Write), (Code::ActionError, Certainty::InDoubt));
        assert_eq!(of(Some("already_exists"), EffectKind::Write), (Code::ActionError, Certainty::InDoubt));
        assert_eq!(of(Some("it was already_processed"), EffectKind::Write).0, Code::ActionError);
    }

    #[test]
    fn a_plea_to_come_back_proves_nothing_unless_the_contract_takes_its_word() {
        let mut contract = contract(EffectKind::Write);
        assert_eq!(meaning(429, None, &contract).certainty, Certainty::InDoubt);
        contract.rejects_before_effect = vec![429];
        assert_eq!(meaning(429, None, &contract).certainty, Certainty::NotProcessed);
        assert_eq!(meaning(503, None, &contract).certainty, Certainty::InDoubt);
        assert_eq!(meaning(404, None, &contract).certainty, Certainty::NotProcessed);
    }

    #[test]
    fn no_status_that_would_be_sent_again_counts_as_rejected() {
        let contract = contract(EffectKind::Write);
        for status in 0..1000 {
            let found = meaning(status, None, &contract);
            if found.code.retryable() {
                assert_eq!(found.certainty, Certainty::InDoubt, "{status}");
            }
        }
    }

    #[test]
    fn http_dates_are_read_and_nonsense_is_not() {
        assert_eq!(date_ms("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777_000));
        assert_eq!(date_ms("Thu, 29 Feb 2024 00:00:00 GMT"), Some(1_709_164_800_000));
        for text in ["", ", ", "Sun, 06 Nov 1994", "Sun, 99 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37 CET"] {
            assert_eq!(date_ms(text), None, "{text}");
        }
        assert_eq!(retry_after_ms("99999999999999999999999", 0), Some(u64::MAX));
        assert_eq!(retry_after_ms("-1", 0), None);
    }
}
