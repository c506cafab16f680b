//! Times as a person reads them.

use amends_core::Timestamp;

pub(super) use amends_gateway::clock::now;

/// A point in time in UTC, such as `2026-03-01 09:30:05.250`.
pub(super) fn utc(at: Timestamp) -> String {
    let ms = at.ms();
    let days = i64::try_from(ms / 86_400_000).unwrap_or(0);
    let of_day = ms % 86_400_000;
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{:03}", ms % 1000)
}

/// The calendar date of a day counted from 1970, by counting in eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(Timestamp::from_ms(0)), "1970-01-01 00:00:00.000");
        assert_eq!(utc(Timestamp::from_ms(951_782_400_000)), "2000-02-29 00:00:00.000");
        assert_eq!(utc(Timestamp::from_ms(1_772_357_405_250)), "2026-03-01 09:30:05.250");
    }
}
