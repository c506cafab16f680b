//! The picture itself.

use std::collections::BTreeMap;

use super::super::Machine;
use super::layout::{HEIGHT, LETTER, MARGIN, Spot, spots};
use super::{Marks, label};
use crate::id::StateName;

/// How much room there is around a word.
const PADDING: f64 = 6.0;

/// Shapes differ by more than colour, so that the picture is read without it too.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1c1c1f;text-anchor:middle}\
    .state rect{fill:#fff;stroke:#6b6b76;stroke-width:1.5}.state.now rect{stroke:#0b62c4;stroke-width:4}\
    .state.now text{font-weight:700}.end{fill:none;stroke:#6b6b76}.way path{fill:none;stroke:#8a8a94;stroke-width:1.5}\
    .way.taken path{stroke:#0b62c4;stroke-width:3}.way text{font-size:12px;stroke:#fff;stroke-width:4;paint-order:stroke}\
    @media(prefers-color-scheme:dark){text{fill:#ececf1}.state rect{fill:#232329;stroke:#9a9aa6}\
    .way text{stroke:#17171b}.state.now rect,.way.taken path{stroke:#7ab7ff}}";

/// Draws a machine from top to bottom.
pub(super) fn draw(machine: &Machine, marks: &Marks) -> String {
    let spots = spots(machine);
    let (ways, left, right) = ways(machine, marks, &spots);
    let bottom = spots.values().map(|spot| spot.y + HEIGHT).fold(0.0, f64::max) + MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{left:.0} 0 {:.0} {bottom:.0}\" role=\"img\" \
         aria-label=\"{}\"><style>{STYLE}</style>\
         <defs><marker id=\"tip\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\">\
         <path d=\"M0 0L8 4L0 8z\" fill=\"context-stroke\"/></marker></defs>\n",
        right - left,
        escaped(&described(machine, marks))
    );
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
    svg.push_str("</svg>\n");
    svg
}

/// The ways, and how far to the left and to the right the picture reaches with their words.
fn ways(machine: &Machine, marks: &Marks, spots: &BTreeMap<&StateName, Spot>) -> (String, f64, f64) {
    let edge = spots.values().map(|spot| spot.x + spot.width).fold(0.0, f64::max);
    let mut text = String::new();
    let (mut left, mut right) = (0.0_f64, edge + MARGIN);
    let mut lanes = 0.0;
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
        (left, right) = (left.min(x - half), right.max(x + half));
        let taken = if marks.taken.contains(name) { " taken" } else { "" };
        text.push_str(&format!("<g class=\"way{taken}\"><path d=\"{path}\" marker-end=\"url(#tip)\"/><text x=\"{x:.1}\" y=\"{y:.1}\">{}</text></g>\n",
            escaped(&label)
        ));
    }
    (text, left, right)
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
