//! A length of time as people write it: `500ms`, `10s`, `15m`, `24h`, `7d`.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A length of time as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span(pub Duration);

impl Span {
    /// Reads one, such as `10s`.
    pub fn parse(text: &str) -> Option<Self> {
        let at = text.find(|c: char| !c.is_ascii_digit())?;
        let (number, unit) = text.split_at(at);
        let number: u64 = number.parse().ok()?;
        let ms = match unit.trim() {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 60 * 60 * 1000,
            "d" => 24 * 60 * 60 * 1000,
            _ => return None,
        };
        Some(Self(Duration::from_millis(number.checked_mul(ms)?)))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        match ms {
            ms if ms > 0 && ms % (60 * 60 * 1000) == 0 => write!(f, "{}h", ms / (60 * 60 * 1000)),
            ms if ms > 0 && ms % (60 * 1000) == 0 => write!(f, "{}m", ms / (60 * 1000)),
            ms if ms > 0 && ms % 1000 == 0 => write!(f, "{}s", ms / 1000),
            ms => write!(f, "{ms}ms"),
        }
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(format!("`{text}` is not a length of time such as `500ms`, `10s` or `24h`"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_with_their_units_and_nothing_else_is() {
        assert_eq!(Span::parse("500ms"), Some(Span(Duration::from_millis(500))));
        assert_eq!(Span::parse("24h"), Some(Span(Duration::from_secs(86_400))));
        for text in ["500ms", "90s", "15m", "24h", "0ms"] {
            assert_eq!(Span::parse(text).unwrap().to_string(), text);
        }
        for wrong in ["", "10", "s", "-1s", "1.5s", "10 parsecs", "99999999999999999999d"] {
            assert_eq!(Span::parse(wrong), None, "{wrong}");
        }
    }
}
