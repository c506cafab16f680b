//! The picture itself.

use std::collections::BTreeMap;

use super::super::Machine;
use super::layout::{HEIGHT, LETTER, MARGIN, Spot, spots};
use super::{Marks, label};
use crate::id::StateName;

/// How much room there is around a word.
const PADDING: f64 = 6.0;

/// How high a word of a way is.
const LINE: f64 = 12.0;
/// How high the name above a machine is.
const TITLE: f64 = 18.0;
/// How many places are tried for a word.
const PLACES_MAX: i32 = 256;
/// The tip of an arrow.
const TIP: &str = "<defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
    <path d=\"M0 0L8 4L0 8z\" fill=\"context-stroke\"/></marker></defs>";

/// Shapes differ by more than colour, so that the picture is read without it too.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1c1c1f;text-anchor:middle}\
    .state rect{fill:#fff;stroke:#6b6b76;stroke-width:1.5}.state.now rect{stroke:#0b62c4;stroke-width:4}\
    .state.now text{font-weight:700}.end{fill:none;stroke:#6b6b76}.way path{fill:none;stroke:#8a8a94;stroke-width:1.5}\
    .way.taken path{stroke:#0b62c4;stroke-width:3}.word{font-size:12px;stroke:#fff;stroke-width:4;paint-order:stroke}\
    @media(prefers-color-scheme:dark){text{fill:#ececf1}.state rect{fill:#232329;stroke:#9a9aa6}\
    .word{stroke:#17171b}.state.now rect,.way.taken path{stroke:#7ab7ff}}";

/// A machine from top to bottom, and how much room it takes.
struct Picture {
    shapes: String,
    left: f64,
    width: f64,
    height: f64,
    about: String,
}

/// Draws a machine from top to bottom.
pub(super) fn draw(machine: &Machine, marks: &Marks) -> String {
    let Picture { shapes, left, width, height, about } = picture(machine, marks);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left:.0} 0 {width:.0} {height:.0}\" role=\"img\" \
         aria-label=\"{about}\"><style>{STYLE}</style>{TIP}\n{shapes}</svg>\n"
    )
}

/// Draws machines side by side, each under its name.
pub(super) fn draw_together(machines: &[(&Machine, Marks)]) -> String {
    let (mut x, mut bottom, mut inner, mut names) = (0.0, 0.0_f64, String::new(), Vec::new());
    for (machine, marks) in machines {
        let Picture { shapes, left, width, height, about } = picture(machine, marks);
        let name = escaped(machine.name().as_str());
        let width = width.max(name.chars().count() as f64 * LETTER + 2.0 * PADDING);
        let (middle, top) = (x + width / 2.0, TITLE + PADDING);
        inner.push_str(&format!(
            "<text class=\"name\" x=\"{middle:.1}\" y=\"{TITLE}\">{name}</text>\n<svg x=\"{x:.0}\" y=\"{top:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"{left:.0} 0 {width:.0} {height:.0}\" role=\"img\" \
             aria-label=\"{about}\">\n{shapes}</svg>\n"
        ));
        (x, bottom) = (x + width + MARGIN, bottom.max(height + top));
        names.push(name);
    }
    let about = format!("The machines {}", names.join(", "));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {x:.0} {bottom:.0}\" role=\"img\" aria-label=\"{about}\">\
         <style>{STYLE}.name{{font-weight:700}}</style>{TIP}\n{inner}</svg>\n"
    )
}

fn picture(machine: &Machine, marks: &Marks) -> Picture {
    let spots = spots(machine);
    let (ways, left, right, lowest) = ways(machine, marks, &spots);
    let bottom = spots.values().map(|spot| spot.y + HEIGHT).fold(lowest, f64::max) + MARGIN;
    let mut svg = String::new();
    svg.push_str(&ways);
    for (state, spot) in &spots {
        let now = if marks.now.as_ref() == Some(*state) { " now" } else { "" };
        let Spot { x, y, width, .. } = *spot;
        svg.push_str(&format!("<g class=\"state{now}\"><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" rx=\"8\"/>"
        ));
        if machine.is_terminal(state) {
            let (x, y, width, height) = (x + 4.0, y + 4.0, width - 8.0, HEIGHT - 8.0);
            svg.push_str(&format!(
                "<rect class=\"end\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height}\" rx=\"5\"/>"
            ));
        }
        svg.push_str(&format!(
            "<text x=\"{:.1}\" y=\"{:.1}\">{}</text></g>\n",
            spot.middle(),
            y + 25.0,
            escaped(state.as_str())
        ));
    }
    let about = escaped(&described(machine, marks));
    Picture { shapes: svg, left, width: right - left, height: bottom, about }
}

/// The ways, and how far to the left, to the right and down the picture reaches with their words.
fn ways(machine: &Machine, marks: &Marks, spots: &BTreeMap<&StateName, Spot>) -> (String, f64, f64, f64) {
    let edge = spots.values().map(|spot| spot.x + spot.width).fold(0.0, f64::max);
    let (mut paths, mut text) = (String::new(), String::new());
    let (mut left, mut right) = (0.0_f64, edge + MARGIN);
    let (mut lanes, mut lowest) = (0.0, 0.0_f64);
    let mut taken_up: Vec<Area> = spots.values().map(Area::of).collect();
    let mut seen: BTreeMap<(&StateName, &StateName), f64> = BTreeMap::new();
    for (name, action, from, to) in machine.ways() {
        let (Some(a), Some(b)) = (spots.get(from), spots.get(to)) else { continue };
        // Ways between the same two states stand side by side.
        let nth = seen.entry((from, to)).or_insert(-1.0);
        *nth += 1.0;
        let aside = *nth * 22.0;
        let label = label(name, action);
        let (path, x, y) = if b.row == a.row + 1 {
            let (x1, y1, x2, y2) = (a.middle() + aside, a.y + HEIGHT, b.middle() + aside, b.y);
            let bend = (y2 - y1) / 2.0;
            let path = format!("M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}", y1 + bend, y2 - bend);
            (path, (x1 + x2) / 2.0, (y1 + y2) / 2.0 + 4.0 + aside * 0.7)
        } else if b.row == a.row && from != to {
            // Beside each other: below the row, so that it goes past whatever stands between.
            let (x1, x2, y) = (a.middle() + aside, b.middle() + aside, a.y + HEIGHT);
            let low = y + HEIGHT * 0.9;
            (format!("M{x1:.1} {y:.1}C{x1:.1} {low:.1} {x2:.1} {low:.1} {x2:.1} {y:.1}"), (x1 + x2) / 2.0, low - 5.0)
        } else {
            // Any other way goes round on the right, in a lane of its own.
            lanes += 1.0;
            let lane = edge + 18.0 * lanes;
            let (x1, y1, x2, y2) = (a.x + a.width, a.y + HEIGHT * 0.7, b.x + b.width, b.y + HEIGHT * 0.3);
            right = right.max(lane + label.chars().count() as f64 * LETTER / 2.0 + MARGIN);
            (
                format!("M{x1:.1} {y1:.1}C{lane:.1} {y1:.1} {lane:.1} {y2:.1} {x2:.1} {y2:.1}"),
                lane * 0.75 + (x1 + x2) * 0.125,
                (y1 + y2) / 2.0,
            )
        };
        let half = label.chars().count() as f64 * LETTER / 2.0 + PADDING;
        // A word stands beside its way rather than on another word, or on a state.
        let words = Area { left: x - half, right: x + half, top: y - LINE, bottom: y + PADDING / 2.0 };
        let places = (0..PLACES_MAX).map(|n| if n % 2 == 0 { n / 2 } else { -(n + 1) / 2 });
        let mut shifts = places.map(|n| f64::from(n) * LINE / 2.0).filter(|shift| words.top + shift > 0.0);
        let free = |shift: &f64| !taken_up.iter().any(|other| other.meets(&words.lower(*shift)));
        let words = words.lower(shifts.find(free).unwrap_or_default());
        let y = words.top + LINE;
        taken_up.push(words);
        (left, right, lowest) = (left.min(x - half), right.max(x + half), lowest.max(words.bottom));
        let taken = if marks.taken.contains(name) { " taken" } else { "" };
        paths.push_str(&format!("<g class=\"way{taken}\"><path d=\"{path}\" marker-end=\"url(#tip)\"/></g>\n"));
        text.push_str(&format!("<text class=\"word\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>\n", escaped(&label)));
    }
    // No way is drawn over a word.
    (paths + &text, left, right, lowest)
}

/// What is taken up of a picture.
#[derive(Clone, Copy)]
struct Area {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

impl Area {
    fn of(spot: &Spot) -> Self {
        Self { left: spot.x, right: spot.x + spot.width, top: spot.y, bottom: spot.y + HEIGHT }
    }

    fn lower(self, by: f64) -> Self {
        Self { top: self.top + by, bottom: self.bottom + by, ..self }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }
}

fn described(machine: &Machine, marks: &Marks) -> String {
    match &marks.now {
        Some(now) => format!("The machine {} in the state {now}", machine.name()),
        None => format!("The machine {}", machine.name()),
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
