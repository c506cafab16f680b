//! When a call is made, in the terms of a policy.

use amends_core::Timestamp;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;
const WEEKDAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

/// A point in time as policies see it, in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// As Cedar writes it: `2026-03-01T09:30:05.250Z`.
    pub text: String,
    /// The hour of the day.
    pub hour: i64,
    /// The day of the week, in English.
    pub weekday: &'static str,
}

impl Moment {
    /// That point in time.
    pub fn of(at: Timestamp) -> Self {
        // Beyond the year 9999 nothing is written any more.
        let ms = at.ms().min(253_402_300_799_999);
        let (day, of_day) = (ms / DAY_MS, ms % DAY_MS);
        let (year, month, date) = civil(day);
        let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
        let text = format!("{year:04}-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1000);
        // 1970 began on a Thursday.
        let weekday = WEEKDAYS[usize::try_from((day + 3) % 7).unwrap_or_default()];
        Self { text, hour: i64::try_from(hour).unwrap_or_default(), weekday }
    }
}

/// The calendar date of a day counted from 1970, by counting in eras of 400 years that begin in March.
fn civil(days: u64) -> (u64, u64, u64) {
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_that_of_the_calendar() {
        for (ms, text, hour, weekday) in [
            (0, "1970-01-01T00:00:00.000Z", 0, "thursday"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z", 0, "tuesday"),
            (1_772_357_405_250, "2026-03-01T09:30:05.250Z", 9, "sunday"),
            (u64::MAX, "9999-12-31T23:59:59.999Z", 23, "friday"),
        ] {
            assert_eq!(Moment::of(Timestamp::from_ms(ms)), Moment { text: text.to_owned(), hour, weekday });
        }
    }
}
