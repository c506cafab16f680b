//! The shapes by which categories are found.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

use super::category::Category;
use super::number;

/// A shape. What its first group holds is masked, or all of it where it has none.
pub(super) struct Pattern {
    pub(super) category: Category,
    pub(super) regex: Regex,
    /// What the shape alone cannot say.
    pub(super) holds: fn(&str) -> bool,
    /// Whether hardly anything else looks like it, so that more may hang on it than what is recorded.
    pub(super) sure: bool,
}

/// The shapes, and all of them at once, which tells in one pass whether any is there.
pub(super) struct Patterns {
    pub(super) each: Vec<Pattern>,
    pub(super) any: RegexSet,
}

pub(super) static PATTERNS: LazyLock<Patterns> = LazyLock::new(|| Patterns {
    any: RegexSet::new(SHAPES.iter().map(|shape| ascii(shape.1))).expect("the shapes are in this file, and tested"),
    each: SHAPES
        .iter()
        .map(|&(category, shape, holds)| Pattern {
            category,
            regex: Regex::new(&ascii(shape)).expect("the shapes are in this file, and tested"),
            holds,
            sure: !UNSURE.iter().any(|unsure| shape.contains(unsure)),
        })
        .collect(),
});

type Shape = (Category, &'static str, fn(&str) -> bool);

/// Names whose values let somebody in, in a pair or as the name of a field.
const SECRET_NAMES: &str = "(?:[a-z0-9]+[_-])*(?:password|passwd|passphrase|pwd|secret|token|api[_-]?key|apikey|\
                            access[_-]?key|private[_-]?key|client[_-]?secret|credentials?|authorization|cookie)";

const SHAPES: &[Shape] = &[
    // A block that was cut off is masked to the end of the text.
    (
        Category::Credential,
        r"(?s)-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\z)",
        always,
    ),
    (Category::Credential, r"(?i)\b(?:bearer|basic)[ \t]+([a-z0-9._~+/=-]{8,})", looks_random),
    (Category::Credential, r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?", always),
    (Category::Credential, r"\b(?:AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}\b", always),
    (Category::Credential, r"\bAIza[0-9A-Za-z_-]{30,}|\bya29\.[0-9A-Za-z_-]{20,}", always),
    (
        Category::Credential,
        r"\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{20,}",
        always,
    ),
    (Category::Credential, r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}|hooks\.slack\.com/services/[A-Za-z0-9/_-]{10,}", always),
    (Category::Credential, r"\b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9]{10,}", always),
    (Category::Credential, r"\bsk-[A-Za-z0-9_-]{20,}", always),
    (Category::Credential, r"\bnpm_[A-Za-z0-9]{30,}|\bpypi-[A-Za-z0-9_-]{30,}", always),
    // The token of ours that undoes a write.
    (Category::Credential, r"\brev_[A-Za-z0-9_-]{16,}", always),
    (Category::Credential, r"(?i)\b[a-z][a-z0-9+.-]{0,20}://([^\s/?#@]+)@", not_masked),
    (Category::GovernmentId, r"\b\d{3}-\d{2}-\d{4}\b", number::is_social_security),
    (Category::GovernmentId, r"\b[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D]\b", always),
    (Category::Contact, r"(?i)\b[a-z0-9._%+-]+@(?:[a-z0-9-]+\.)+[a-z]{2,24}\b", always),
    (Category::Contact, r"\+\d(?:[ ().-]{0,2}\d){7,14}\b|\(\d{3}\) ?\d{3}-\d{4}\b|\b\d{3}[-.]\d{3}[-.]\d{4}\b", always),
    (Category::Financial, r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}\b", number::is_iban),
    (Category::OnlineIdentifier, r"\b\d{1,3}(?:\.\d{1,3}){3}\b", number::is_ipv4),
    (Category::OnlineIdentifier, r"(?i)(?:[0-9a-f]{0,4}:){2,7}[0-9a-f]{0,4}", number::is_ipv6),
    (Category::OnlineIdentifier, r"(?i)\b[0-9a-f]{2}(?:[:-][0-9a-f]{2}){5}\b", always),
    (Category::Location, r"-?\b\d{1,3}\.\d{3,}, ?-?\d{1,3}\.\d{3,}\b", number::is_place),
];

/// Parts of the shapes that other things have as well: a word after `Bearer`, a name that begins with `sk-`. Our own tokens are given
/// to agents on purpose.
const UNSURE: [&str; 3] = ["(?:bearer|basic)", r"\bsk-", r"\brev_"];

/// What every sure shape of the floor has in it, however its text is written down as JSON: most texts have none of it.
pub(super) static HINT: LazyLock<Regex> = LazyLock::new(|| {
    let shape = r#"PRIVATE KEY-----|eyJ[A-Za-z0-9_-]{5}|A[A-Z]{3}[A-Z0-9]{16}|AIza|ya29\.|gh[pousr]_|github_pat_|glpat-|xox[a-z]-|hooks\.slack|[rsp]k_(?:live|test)_|whsec_|npm_|pypi-|:\\?/\\?/[^\s/?#@"]+@|[0-9]{3}-[0-9]{2}-[0-9]{4}|[A-Z]{2} ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]|[0-9](?:[ -]?[0-9]){13}"#;
    Regex::new(shape).expect("the shape is in this file, and tested")
});

/// Pairs of a name and a secret, such as `password=…` or `"token": "…"`.
pub(super) static PAIRS: LazyLock<Regex> = LazyLock::new(|| {
    let shape = format!(r#"(?i)\b{SECRET_NAMES}\b\\?["']?[ \t]{{0,4}}[:=][ \t]{{0,4}}\\?["']?([^\s"'&,;}}\\]+)"#);
    Regex::new(&ascii(&shape)).expect("the shape is in this file, and tested")
});

/// Names of fields whose values let somebody in.
pub(super) static SECRET_FIELDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(&format!("(?i)^{SECRET_NAMES}$")).expect("the shape is in this file, and tested"));

/// The shape with words and digits as ASCII means them: those of all languages would make the search slow.
fn ascii(shape: &str) -> String {
    shape.replace(r"\b", r"(?-u:\b)").replace(r"\d", "[0-9]")
}

fn always(_: &str) -> bool {
    true
}

/// Whether it is not what masking or cutting left.
pub(super) fn not_masked(found: &str) -> bool {
    !found.starts_with("[redacted:") && found != "…"
}

/// Whether what follows `Bearer` is a token rather than a word.
fn looks_random(found: &str) -> bool {
    found.len() >= 20 || found.bytes().any(|byte| byte.is_ascii_digit())
}
