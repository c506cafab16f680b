//! Names within the items of lists that lead nowhere.

use serde_json::Value;

use super::inputs::{Named, closed_properties, meant};
use super::typed::{is_list, memberless};
use super::{Action, Does, Machine};
use crate::expression::{Expression, Place, Step};
use crate::nearest::nearest;

impl Machine {
    /// What an expression of an action reads of items that do not have it, each with what to do about it.
    pub(super) fn items_lack(&self, expression: &Expression, action: &Action) -> Vec<(String, String)> {
        let places = expression.within_items();
        let found = places.iter().filter_map(|place| {
            let (schema, steps) = match (place.variable.as_str(), place.steps.as_slice()) {
                ("state", steps) => (self.schema.as_ref()?, steps),
                ("inputs", steps) => (action.input.as_ref()?, steps),
                ("result", [Step::Member(of), steps @ ..]) if of == "fields" => match &action.does {
                    Does::Allowed(allowed) => (allowed.completion.as_ref()?, steps),
                    _ => return None,
                },
                _ => return None,
            };
            let behind = place.steps.len() - steps.len();
            let (at, fix) = lacks(schema, steps, |n| up_to(place, behind + n))?;
            Some((up_to(place, behind + at + 1), fix))
        });
        let mut all: Vec<_> = found.collect();
        all.dedup();
        all
    }
}

/// The first of those steps that leads nowhere behind an item of a list, and what to do about it. `before` names what comes before a
/// step.
fn lacks(root: &Value, steps: &[Step], before: impl Fn(usize) -> String) -> Option<(usize, String)> {
    let (mut part, mut in_item) = (meant(root, root), false);
    for (n, step) in steps.iter().enumerate() {
        part = match step {
            Step::Item => {
                // Where it may be something else than a list, its keys would be gone through.
                let items = part.get("items").filter(|_| is_list(part) && part.get("prefixItems").is_none())?;
                in_item = true;
                meant(root, items)
            }
            Step::Member(name) => {
                if let Some(what) = memberless(part).filter(|_| in_item) {
                    return Some((n, format!("`{}` is {what}, and has no members", before(n))));
                }
                let known = closed_properties(Some(part)).map(Named::only);
                if let Some(known) = known.filter(|known| in_item && known.lacks(name)) {
                    let near = nearest(name, known.names.iter().copied()).into_iter().next();
                    let listed = || known.names.iter().copied().collect::<Vec<_>>().join("`, `");
                    let fix = match near {
                        Some(near) => format!("did you mean `{}.{near}`?", before(n)),
                        None => format!("known: `{}`", listed()),
                    };
                    return Some((n, fix));
                }
                meant(root, part.get("properties")?.get(name)?)
            }
        };
    }
    None
}

fn up_to(place: &Place, steps: usize) -> String {
    Place { variable: place.variable.clone(), steps: place.steps[..steps].to_vec() }.to_string()
}
