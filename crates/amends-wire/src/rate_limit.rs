//! Rate limit headers: when an upstream that names no `Retry-After` will take calls again.

/// How long an upstream's rate limit headers ask to wait, in the words of a `Retry-After`: seconds. Nothing while calls are
/// left, or where the headers do not say.
///
/// Understood are `RateLimit` (`"default";r=0;t=30`, or the older `limit=10, remaining=0, reset=30`), the fields
/// `RateLimit-Remaining` and `RateLimit-Reset`, and the same with `X-` before them, whose reset may also be a time since 1970.
///
/// ```
/// use amends_wire::rate_limit::wait_seconds;
///
/// let headers = |name: &str| (name == "ratelimit").then_some(r#""default";r=0;t=30"#);
/// assert_eq!(wait_seconds(headers, 0), Some(30));
/// ```
pub fn wait_seconds<'a>(header: impl Fn(&str) -> Option<&'a str>, now_ms: u64) -> Option<u64> {
    if let Some(limits) = header("ratelimit") {
        return limits.split(',').filter_map(policy).max().or_else(|| older(limits));
    }
    let plain = spent(header("ratelimit-remaining"), header("ratelimit-reset"));
    plain.or_else(|| {
        let reset = spent(header("x-ratelimit-remaining"), header("x-ratelimit-reset"))?;
        // No upstream asks for thirty years; this is a point in time.
        Some(if reset > 1_000_000_000 { reset.saturating_sub(now_ms / 1000) } else { reset })
    })
}

/// One policy of a structured `RateLimit`: its time where nothing is left of it.
fn policy(text: &str) -> Option<u64> {
    let parameter = |name: &str| text.split(';').skip(1).find_map(|part| part.trim().strip_prefix(name));
    spent(parameter("r="), parameter("t="))
}

/// `RateLimit` as it was before it was structured.
fn older(text: &str) -> Option<u64> {
    let parameter = |name: &str| text.split(',').find_map(|part| part.trim().strip_prefix(name));
    spent(parameter("remaining="), parameter("reset="))
}

fn spent(remaining: Option<&str>, reset: Option<&str>) -> Option<u64> {
    let none_left = remaining?.trim().parse::<u64>().ok()? == 0;
    reset?.trim().parse().ok().filter(|_| none_left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&str, &'static str)]) -> Option<u64> {
        wait_seconds(
            |name| headers.iter().find(|(known, _)| *known == name).map(|(_, value)| *value),
            1_700_000_000_000,
        )
    }

    #[test]
    fn a_limit_that_is_used_up_says_when_it_is_not() {
        assert_eq!(of(&[("ratelimit", r#""burst";r=4;t=1, "day";r=0;t=60"#)]), Some(60));
        assert_eq!(of(&[("ratelimit", "limit=10, remaining=0, reset=30")]), Some(30));
        assert_eq!(of(&[("ratelimit-remaining", "0"), ("ratelimit-reset", "9")]), Some(9));
        assert_eq!(of(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1700000012")]), Some(12));
        assert_eq!(of(&[("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "12")]), Some(12));
    }

    #[test]
    fn a_limit_with_calls_left_or_without_sense_says_nothing() {
        assert_eq!(of(&[("ratelimit", r#""default";r=3;t=30"#)]), None);
        assert_eq!(of(&[("ratelimit", "soon")]), None);
        assert_eq!(of(&[("ratelimit-remaining", "0")]), None);
        assert_eq!(of(&[("ratelimit-remaining", "1"), ("ratelimit-reset", "9")]), None);
        assert_eq!(of(&[("ratelimit-remaining", "-1"), ("ratelimit-reset", "9")]), None);
        assert_eq!(of(&[]), None);
    }
}
