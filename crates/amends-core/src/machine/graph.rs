//! A machine as a picture: Mermaid, DOT, and SVG that we lay out ourselves.

mod layout;
mod svg;
mod text;

use std::collections::BTreeSet;

use super::{Action, Machine};
use crate::id::{ActionName, StateName};

/// What is marked in a picture: where the machine is, and the actions that were taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// Where it is.
    pub now: Option<StateName>,
    /// What was taken.
    pub taken: BTreeSet<ActionName>,
}

impl Machine {
    /// The machine as a Mermaid state diagram.
    pub fn mermaid(&self, marks: &Marks) -> String {
        let ids: Vec<&StateName> = self.states().into_iter().collect();
        let id = |state: &StateName| ids.iter().position(|known| *known == state).unwrap_or_default();
        let mut text = String::from("stateDiagram-v2\n");
        for (n, state) in ids.iter().enumerate() {
            text.push_str(&format!("    state \"{}\" as s{n}\n", plain(state.as_str())));
        }
        text.push_str(&format!("    [*] --> s{}\n", id(&self.initial)));
        for (name, action, from, to) in self.ways() {
            text.push_str(&format!("    s{} --> s{} : {}\n", id(from), id(to), plain(&label(name, action))));
        }
        for state in &self.terminal {
            text.push_str(&format!("    s{} --> [*]\n", id(state)));
        }
        if let Some(now) = marks.now.as_ref().filter(|now| ids.contains(now)) {
            text.push_str(&format!("    classDef now stroke-width:4px,font-weight:bold\n    class s{} now\n", id(now)));
        }
        text
    }

    /// The machine in the language of Graphviz.
    pub fn dot(&self, marks: &Marks) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut text = format!("digraph {} {{\n    node [shape=box, style=rounded]\n", quoted(self.name.as_str()));
        for state in self.states() {
            let mut looks = Vec::new();
            if self.is_terminal(state) {
                looks.push("peripheries=2");
            }
            if marks.now.as_ref() == Some(state) {
                looks.push("penwidth=3");
            }
            text.push_str(&format!("    {} [{}]\n", quoted(state.as_str()), looks.join(", ")));
        }
        for (name, action, from, to) in self.ways() {
            let bold = if marks.taken.contains(name) { ", penwidth=2" } else { "" };
            let label = quoted(&label(name, action));
            text.push_str(&format!("    {} -> {} [label={label}{bold}]\n", quoted(from.as_str()), quoted(to.as_str())));
        }
        text.push_str("}\n");
        text
    }

    /// The machine in lines of text: each state with the ways that lead away from it, `[…]` around those where it is over.
    pub fn text(&self, marks: &Marks) -> String {
        text::draw(self, marks)
    }

    /// The machine as a picture of its own.
    pub fn svg(&self, marks: &Marks) -> String {
        svg::draw(self, marks)
    }

    /// Every way from a state to a state, with the action that leads it.
    fn ways(&self) -> impl Iterator<Item = (&ActionName, &Action, &StateName, &StateName)> {
        self.actions.iter().flat_map(|(name, action)| {
            let to: BTreeSet<&StateName> = action.to.states().collect();
            action.from.iter().flat_map(move |from| to.clone().into_iter().map(move |to| (name, action, from, to)))
        })
    }
}

/// Machines as one picture, side by side.
pub fn together(machines: &[(&Machine, Marks)]) -> String {
    svg::draw_together(machines)
}

fn label(name: &ActionName, action: &Action) -> String {
    match (&action.guard, &action.queue) {
        (None, None) => name.to_string(),
        (Some(_), None) => format!("{name} [guarded]"),
        (None, Some(queue)) => format!("{name} [{queue} approves]"),
        (Some(_), Some(queue)) => format!("{name} [guarded, {queue} approves]"),
    }
}

/// A text that means nothing to Mermaid.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_alphanumeric() || " _-,[]".contains(c) { c } else { ' ' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn machine() -> Machine {
        let declared = json!({
            "initial": "new <one>", "terminal": ["done"],
            "actions": {
                "go": { "from": ["new <one>"], "to": [{ "when": "result.ok", "state": "done" }, { "state": "new <one>" }], "tool": "t", "times": 3 },
                "ask": { "from": ["new <one>"], "to": "done", "queue": "boss", "guard": "true" },
            },
        });
        Machine::read("m", &serde_json::from_value(declared).unwrap()).unwrap()
    }

    /// Where the words of a picture lie: left, right, top and bottom of each, as wide as its letters at most.
    fn words(svg: &str) -> Vec<(String, [f64; 4])> {
        let of = |part: &str, name: &str| -> Option<f64> {
            part.split_once(&format!("{name}=\""))?.1.split_once('"')?.0.parse().ok()
        };
        let parts = svg.split("<text ").skip(1);
        parts
            .filter_map(|part| {
                let (x, y) = (of(part, "x")?, of(part, "y")?);
                let word = part.split_once('>')?.1.split_once("</text>")?.0.to_owned();
                let half = word.chars().count() as f64 * 3.2;
                Some((word, [x - half, x + half, y - 10.0, y + 2.0]))
            })
            .collect()
    }

    #[test]
    fn no_word_lies_on_another() {
        let away = |n: usize| json!({ "from": ["a", "b", "c"], "to": format!("end_{n}") });
        let mut actions: serde_json::Map<String, Value> =
            (0..4).map(|n| (format!("leave_for_the_end_number_{n}"), away(n))).collect();
        actions.insert("go".into(), json!({ "from": ["a"], "to": "b" }));
        actions.insert("go_on_in_another_way".into(), json!({ "from": ["a"], "to": "b", "guard": "true" }));
        actions.insert("go_further".into(), json!({ "from": ["b"], "to": "c" }));
        actions.insert("back".into(), json!({ "from": ["c"], "to": "a", "times": 2 }));
        let terminal: Vec<String> = (0..4).map(|n| format!("end_{n}")).collect();
        let declared = json!({ "initial": "a", "terminal": terminal, "actions": actions });
        let machine = Machine::read("m", &serde_json::from_value(declared).unwrap()).unwrap();
        let words = words(&machine.svg(&Marks::default()));
        assert_eq!(words.len(), 7 + 12 + 4, "{words:?}");
        for (n, (word, a)) in words.iter().enumerate() {
            for (other, b) in &words[n + 1..] {
                let apart = a[1] <= b[0] || b[1] <= a[0] || a[3] <= b[2] || b[3] <= a[2];
                assert!(apart, "`{word}` and `{other}`: {a:?} {b:?}");
            }
        }
    }

    #[test]
    fn machines_are_drawn_side_by_side() {
        let (one, two) = (machine(), machine());
        let all = together(&[(&one, Marks::default()), (&two, Marks::default())]);
        assert_eq!((all.matches("<svg").count(), all.matches("</svg>").count()), (3, 3), "{all}");
        assert_eq!(all.matches("class=\"name\"").count(), 2, "{all}");
    }

    #[test]
    fn every_word_lies_within_the_picture() {
        let declared = json!({
            "initial": "a", "terminal": ["z"],
            "actions": { "an_action_of_a_long_name": { "from": ["a"], "to": "z", "queue": "the_whole_board", "guard": "true" } },
        });
        let machine = Machine::read("m", &serde_json::from_value(declared).unwrap()).unwrap();
        let svg = machine.svg(&Marks::default());
        let after = |from: &str, text: &str| text.split(from).nth(1).unwrap_or_default().to_owned();
        let bounds = after("viewBox=\"", &svg);
        let bounds: Vec<f64> =
            bounds.split('"').next().unwrap_or_default().split(' ').filter_map(|part| part.parse().ok()).collect();
        let label = "an_action_of_a_long_name [guarded, the_whole_board approves]";
        let word = svg.split("<text ").find(|word| word.contains(label)).unwrap_or_default().to_owned();
        let x: f64 = after("x=\"", &word).split('"').next().unwrap_or_default().parse().unwrap();
        let half = label.len() as f64 * 8.0 / 2.0;
        assert!(bounds[0] <= x - half && x + half <= bounds[0] + bounds[2], "{x} in {bounds:?}");
    }

    #[test]
    fn the_three_pictures_show_every_way_and_where_the_machine_is() {
        let machine = machine();
        let marks = Marks { now: Some(StateName::new("new <one>")), taken: [ActionName::new("go")].into() };
        let mermaid = "stateDiagram-v2\n    state \"done\" as s0\n    state \"new  one \" as s1\n    [*] --> s1\n    \
                       s1 --> s0 : ask [guarded, boss approves]\n    s1 --> s0 : go\n    s1 --> s1 : go\n    s0 --> [*]\n    \
                       classDef now stroke-width:4px,font-weight:bold\n    class s1 now\n";
        assert_eq!(machine.mermaid(&marks), mermaid);
        let dot = machine.dot(&marks);
        assert!(dot.contains("\"new <one>\" -> \"done\" [label=\"go\", penwidth=2]"), "{dot}");
        assert!(dot.contains("\"done\" [peripheries=2]"), "{dot}");
        let text =
            "new <one>*  ask [guarded, boss approves] -> [done]\n            go -> [done] or new <one>*\n[done]\n";
        assert_eq!(machine.text(&marks), text);
        let svg = machine.svg(&marks);
        assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("new &lt;one&gt;") && !svg.contains("<one>"), "{svg}");
        assert_eq!(svg.matches("class=\"state now\"").count(), 1, "{svg}");
        assert_eq!(svg.matches("class=\"way taken\"").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"way\"").count(), 1, "{svg}");
    }
}
