//! Small pictures of numbers over time, drawn here.

use maud::{Markup, html};

const HEIGHT: u64 = 60;
const BAR: u64 = 8;
const GAP: u64 = 2;
/// How many spans of time a picture shows at least, so that the first bar is no wider than the last.
const BARS_MIN: u64 = 60;

/// Bars for what was counted in each span of time, the oldest first. `what` says what they count.
pub(super) fn bars(what: &str, counted: &[u64]) -> Markup {
    let most = counted.iter().copied().max().unwrap_or(0);
    let sum: u64 = counted.iter().sum();
    let bars = BARS_MIN.max(counted.len() as u64);
    let (width, left) = (bars * (BAR + GAP), (bars - counted.len() as u64) * (BAR + GAP));
    let said = format!("{what}: {sum} in all, at most {most} at once");
    html! {
        figure.chart {
            svg viewBox=(format!("0 0 {width} {HEIGHT}")) role="img" aria-label=(said) preserveAspectRatio="none" {
                line.ground x1="0" y1=(HEIGHT) x2=(width) y2=(HEIGHT) {}
                @for (place, count) in counted.iter().enumerate() {
                    @let height = scaled(*count, most);
                    @if height > 0 {
                        rect.bar x=(left + place as u64 * (BAR + GAP)) y=(HEIGHT - height) width=(BAR) height=(height) {
                            title { (count) }
                        }
                    }
                }
            }
            figcaption { (what) ": " strong { (sum) } }
        }
    }
}

/// How high a bar is. Whatever was counted at all can be seen.
fn scaled(count: u64, most: u64) -> u64 {
    if count == 0 || most == 0 { 0 } else { (count * HEIGHT / most).max(2) }
}

/// What was counted between each look and the next.
pub(super) fn between(counted: impl Iterator<Item = u64>) -> Vec<u64> {
    let all: Vec<u64> = counted.collect();
    all.windows(2).map(|two| two[1].saturating_sub(two[0])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_counted_is_seen_and_said() {
        assert_eq!(between([3, 5, 5, 9].into_iter()), [2, 0, 4]);
        let drawn = bars("a < b", &[1, 0, 1000]).into_string();
        assert_eq!(drawn.matches("<rect").count(), 2, "{drawn}");
        assert!(drawn.contains("a &lt; b: 1001 in all, at most 1000 at once"), "{drawn}");
        assert!(drawn.contains("height=\"2\""), "one of a thousand can be seen: {drawn}");
        assert!(!bars("none", &[]).into_string().contains("<rect"));
    }
}
