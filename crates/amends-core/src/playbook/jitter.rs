//! How far a wait may differ, as it is written.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// How far a wait may differ, in percent: a whole number is percent, a broken one a fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Jitter(pub u8);

impl<'de> Deserialize<'de> for Jitter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl Visitor<'_> for Number {
            type Value = Jitter;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a percentage from 0 to 100, or a fraction from 0.0 to 1.0")
            }

            fn visit_i64<E: Error>(self, percent: i64) -> Result<Jitter, E> {
                let sound = u8::try_from(percent).ok().filter(|percent| *percent <= 100);
                sound.map(Jitter).ok_or_else(|| E::custom(format!("`{percent}` is not a percentage from 0 to 100")))
            }

            fn visit_u64<E: Error>(self, percent: u64) -> Result<Jitter, E> {
                self.visit_i64(i64::try_from(percent).unwrap_or(i64::MAX))
            }

            fn visit_f64<E: Error>(self, fraction: f64) -> Result<Jitter, E> {
                let sound = (0.0..=1.0).contains(&fraction);
                let percent = (fraction * 100.0).round() as u8;
                sound
                    .then_some(Jitter(percent))
                    .ok_or_else(|| E::custom(format!("`{fraction}` is not a fraction from 0.0 to 1.0")))
            }
        }
        deserializer.deserialize_any(Number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jitter_is_a_percentage_or_a_fraction_and_is_written_as_a_percentage() {
        let read = |text: &str| serde_json::from_str::<Jitter>(text);
        assert_eq!(read("20").unwrap(), Jitter(20));
        assert_eq!(read("0.2").unwrap(), Jitter(20));
        assert_eq!(serde_json::to_string(&Jitter(20)).unwrap(), "20");
        for wrong in ["101", "-1", "1.5", "\"much\""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
