//! What checking a value against a schema can cost at most, so that no schema can keep us busy for ever.
//!
//! A schema that refers to itself is a graph. For each nesting of the value, the number of times a part of the value can be
//! visited is counted along the graph, without visiting anything: alternatives add up, levels multiply. A visit that goes
//! through a list of the schema's counts as often as the list is long.

mod graph;

use serde_json::Value;

use super::SchemaError;
use graph::Graph;

/// How many visits of all parts together a check may take.
const VISITS_MAX: u64 = 20_000_000;
/// How deep a value may nest; the parser takes no deeper one.
const DEPTH_MAX: usize = 128;
/// How many visits matching one byte of text is worth, where the pattern tries one way after the other.
const BACKTRACKING: u64 = 64;

/// For each nesting of a value, how often one of its parts can be visited.
#[derive(Debug)]
pub(super) struct Costs {
    by_depth: Vec<u64>,
    /// What a byte of the value's text is worth.
    byte: u64,
}

/// How large a value is.
pub(super) struct Size {
    /// How many parts it has, itself among them.
    pub(super) parts: u64,
    /// How many bytes its texts and names have.
    bytes: u64,
    /// How deep it nests.
    depth: usize,
}

impl Costs {
    /// Counts a schema's costs.
    pub(super) fn of(schema: &Value) -> Result<Self, SchemaError> {
        let graph = Graph::of(schema)?;
        let order = graph.order()?;
        let mut before = vec![0_u64; graph.nodes.len()];
        let mut by_depth = Vec::with_capacity(DEPTH_MAX + 1);
        for _ in 0..=DEPTH_MAX {
            let mut now = vec![0_u64; graph.nodes.len()];
            for n in &order {
                let node = &graph.nodes[*n];
                let sum = |all: &[usize], costs: &[u64]| all.iter().fold(0_u64, |sum, n| sum.saturating_add(costs[*n]));
                let worst = node.fields.iter().map(|n| before[*n]).max().unwrap_or(0);
                now[*n] = node
                    .weight
                    .saturating_add(sum(&node.here, &now))
                    .saturating_add(sum(&node.below, &before))
                    .saturating_add(worst);
            }
            by_depth.push(now[0]);
            if now == before {
                break;
            }
            before = now;
        }
        let byte = if graph.nodes.iter().any(|node| node.backtracks) { BACKTRACKING } else { 0 };
        if by_depth[0] > VISITS_MAX { Err(SchemaError::TooCostly) } else { Ok(Self { by_depth, byte }) }
    }

    /// Whether checking that value is bounded.
    pub(super) fn affords(&self, value: &Value) -> bool {
        let Size { parts, bytes, depth } = size(value);
        let visits = self.by_depth.get(depth).or(self.by_depth.last()).copied().unwrap_or(u64::MAX);
        let matched = bytes.saturating_mul(self.byte);
        depth <= DEPTH_MAX && visits.saturating_mul(parts).saturating_add(matched) <= VISITS_MAX
    }
}

/// How large a value is, found without recursion.
fn size(value: &Value) -> Size {
    let mut size = Size { parts: 0, bytes: 0, depth: 0 };
    let mut open = vec![(value, 0)];
    while let Some((value, depth)) = open.pop() {
        size.parts += 1;
        size.depth = size.depth.max(depth);
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(fields) => {
                size.bytes += fields.keys().map(|name| name.len() as u64).sum::<u64>();
                open.extend(fields.values().map(|field| (field, depth + 1)));
            }
            Value::String(text) => size.bytes += text.len() as u64,
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    size
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Schema;
    use serde_json::json;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({}), |inner, _| json!({"c": inner}))
    }

    #[test]
    fn a_circle_on_one_value_has_no_end() {
        assert_eq!(Schema::from_value(json!({"$ref": "#"})).unwrap_err(), SchemaError::Endless);
        let round = json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}});
        assert_eq!(Schema::from_value(round).unwrap_err(), SchemaError::Endless);
    }

    #[test]
    fn a_schema_that_doubles_itself_is_refused() {
        let mut defs = serde_json::Map::new();
        for n in 0..40 {
            let next = json!({"$ref": format!("#/$defs/a{}", n + 1)});
            defs.insert(format!("a{n}"), json!({"allOf": [next, next]}));
        }
        defs.insert("a40".into(), json!({"type": "string"}));
        let doubling = json!({"$ref": "#/$defs/a0", "$defs": defs});
        assert_eq!(Schema::from_value(doubling).unwrap_err(), SchemaError::TooCostly);
    }

    #[test]
    fn one_that_doubles_with_each_level_checks_shallow_values_only() {
        let branch = json!({"properties": {"c": {"$ref": "#"}}, "required": ["c", "d"]});
        let schema =
            Schema::from_value(json!({"anyOf": [branch, branch, {"properties": {"c": {"$ref": "#"}}}]})).unwrap();
        assert_eq!(schema.fits(&nested(3)), Some(true));
        assert_eq!(schema.fits(&nested(100)), None);
        assert!(schema.check(&nested(100)).is_empty());
    }

    #[test]
    fn a_long_way_is_refused_and_a_deep_value_in_a_plain_one_is_checked() {
        let mut defs = serde_json::Map::new();
        for n in 0..5000 {
            defs.insert(format!("a{n}"), json!({"properties": {"c": {"$ref": format!("#/$defs/a{}", n + 1)}}}));
        }
        let chain = json!({"$ref": "#/$defs/a0", "$defs": defs});
        assert_eq!(Schema::from_value(chain).unwrap_err(), SchemaError::TooCostly);
        let list = Schema::from_value(json!({"type": "object", "properties": {"c": {"$ref": "#"}}})).unwrap();
        assert_eq!(list.fits(&nested(120)), Some(true));
    }

    #[test]
    fn a_list_in_the_schema_counts_for_every_value_held_against_it() {
        let options: Vec<Value> = (0..10_000).map(|n| json!({ "n": n })).collect();
        let schema = Schema::from_value(json!({"items": {"enum": options}})).unwrap();
        assert_eq!(schema.fits(&json!([{"n": 7}])), Some(true));
        assert_eq!(schema.fits(&json!([{"n": -1}])), Some(false));
        assert_eq!(schema.fits(&Value::from(vec![json!({"n": -1}); 10_000])), None);
    }

    #[test]
    fn a_pattern_that_tries_many_ways_is_matched_with_little_text_only() {
        let many = |pattern: &str, length: usize| {
            let schema = Schema::from_value(json!({"items": {"pattern": pattern}})).unwrap();
            schema.fits(&Value::from(vec!["a".repeat(length) + "!"; 200]))
        };
        for pattern in ["^(?=a)(a+)+\\1$", "^(?!b)(a|aa)+$"] {
            assert_eq!(many(pattern, 5), Some(false), "{pattern}");
            assert_eq!(many(pattern, 3000), None, "{pattern}");
        }
        assert_eq!(many("^(a+)+$", 3000), Some(false));
    }

    #[test]
    fn references_are_followed_by_name_and_by_escaped_path() {
        for reference in ["#node", "#/$defs/a~1b%20c", "node.json#/$defs/x"] {
            let schema = json!({"$id": "https://e.org/node.json", "$ref": reference,
                "$defs": {"a/b c": {"$anchor": "node", "allOf": [{"$ref": "#"}]}, "x": {"$ref": "#"}}});
            assert_eq!(Costs::of(&schema).unwrap_err(), SchemaError::Endless, "{reference}");
        }
    }

    #[test]
    fn the_longest_ways_that_are_taken_fit_on_a_small_stack() {
        let mut defs = serde_json::Map::new();
        for n in 0..28 {
            defs.insert(format!("a{n}"), json!({"allOf": [{"$ref": format!("#/$defs/a{}", n + 1)}]}));
        }
        defs.insert("a28".into(), json!({"properties": {"c": {"$ref": "#/$defs/a0"}}}));
        let chains = Schema::from_value(json!({"$ref": "#/$defs/a0", "$defs": defs})).unwrap();
        assert_eq!(chains.fits(&nested(120)), Some(true));
        let mut defs = serde_json::Map::new();
        for n in 0..250 {
            defs.insert(format!("a{n}"), json!({"properties": {"c": {"$ref": format!("#/$defs/a{}", n + 1)}}}));
        }
        defs.insert("a250".into(), json!({"required": ["x"]}));
        let way = Schema::from_value(json!({"$ref": "#/$defs/a0", "$defs": defs})).unwrap();
        assert_eq!(way.fits(&nested(120)), Some(true));
        let mut wrong = nested(120);
        wrong["c"]["c"] = json!(1);
        assert!(chains.check(&wrong).is_empty());
    }
}
