//! A schema as a graph of subschemas and of what each applies to what.

use std::collections::HashMap;

use serde_json::Value;

use crate::schema::SchemaError;

/// How many subschemas a schema may have.
const NODES_MAX: usize = 20_000;
/// How long a chain of references or alternatives on one value may be.
const CHAIN_MAX: usize = 64;
/// How long a way through the whole schema may be, before it comes back to where it was.
const WAY_MAX: usize = 512;

/// One subschema: which others are applied to the same value, to what is below it, and to one of its fields each.
#[derive(Debug, Default)]
pub(super) struct Node {
    /// How much of its own is held against each value.
    pub(super) weight: u64,
    /// Whether it has a pattern that takes long for some texts.
    pub(super) backtracks: bool,
    pub(super) here: Vec<usize>,
    pub(super) below: Vec<usize>,
    pub(super) fields: Vec<usize>,
}

/// All subschemas; the first is the whole.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

#[derive(Clone, Copy)]
enum Applied {
    Here,
    Below,
    Field,
}

impl Graph {
    pub(super) fn of(root: &Value) -> Result<Self, SchemaError> {
        let bases = bases(root);
        let mut graph = Self { nodes: vec![Node::default()] };
        let mut known: HashMap<usize, usize> = HashMap::from([(address(root), 0)]);
        let mut open = vec![(0, root)];
        while let Some((n, schema)) = open.pop() {
            graph.nodes[n].weight = weight(schema);
            graph.nodes[n].backtracks = backtracks(schema);
            for (applied, target) in applied(schema, &bases) {
                let next = graph.nodes.len();
                let to = *known.entry(address(target)).or_insert(next);
                if to == next {
                    if next >= NODES_MAX {
                        return Err(SchemaError::TooLarge);
                    }
                    graph.nodes.push(Node::default());
                    open.push((to, target));
                }
                let node = &mut graph.nodes[n];
                match applied {
                    Applied::Here => node.here.push(to),
                    Applied::Below => node.below.push(to),
                    Applied::Field => node.fields.push(to),
                }
            }
        }
        Ok(graph)
    }

    /// The subschemas so ordered that each comes after all that it applies to the same value.
    pub(super) fn order(&self) -> Result<Vec<usize>, SchemaError> {
        self.walk(|node| node.here.iter().chain(&node.below).chain(&node.fields), WAY_MAX, false)?;
        self.walk(|node| node.here.iter(), CHAIN_MAX, true)
    }

    /// Visits everything depth first, what is applied first; a circle is an error where there may be none.
    fn walk<'a, I: Iterator<Item = &'a usize>>(
        &'a self,
        next: impl Fn(&'a Node) -> I,
        length_max: usize,
        acyclic: bool,
    ) -> Result<Vec<usize>, SchemaError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; self.nodes.len()];
        let mut order = Vec::with_capacity(self.nodes.len());
        for start in 0..self.nodes.len() {
            if marks[start] != Mark::New {
                continue;
            }
            marks[start] = Mark::Open;
            let mut way = vec![(start, next(&self.nodes[start]))];
            while let Some((n, rest)) = way.last_mut() {
                match rest.next() {
                    Some(to) => match marks[*to] {
                        Mark::New => {
                            if way.len() >= length_max {
                                return Err(SchemaError::TooCostly);
                            }
                            marks[*to] = Mark::Open;
                            way.push((*to, next(&self.nodes[*to])));
                        }
                        Mark::Open if acyclic => return Err(SchemaError::Endless),
                        Mark::Open | Mark::Done => {}
                    },
                    None => {
                        marks[*n] = Mark::Done;
                        order.push(*n);
                        way.pop();
                    }
                }
            }
        }
        Ok(order)
    }
}

/// How much a schema itself holds against each value: one by one, the values and names that it lists.
fn weight(schema: &Value) -> u64 {
    let lists = ["enum", "const", "required", "dependentRequired"];
    let listed = lists.iter().filter_map(|keyword| schema.get(keyword)).map(|list| super::size(list).parts);
    let fields = schema.get("properties").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    listed.fold(1 + fields as u64, u64::saturating_add)
}

/// Whether a schema has a pattern that looks around or refers back; all others are matched in one go.
fn backtracks(schema: &Value) -> bool {
    let own = schema.get("pattern").and_then(Value::as_str);
    let of_names = schema.get("patternProperties").and_then(Value::as_object);
    let of_names = of_names.into_iter().flat_map(|patterns| patterns.keys().map(String::as_str));
    own.into_iter().chain(of_names).any(|pattern| {
        let signs = ["(?=", "(?!", "(?<", "(?>", "(?(", "*+", "++", "?+", "}+", "\\k", "\\g", "\\G", "\\K"];
        let refers = |digit: char| pattern.contains(&format!("\\{digit}"));
        signs.iter().any(|sign| pattern.contains(sign)) || ('1'..='9').any(refers)
    })
}

/// What a schema applies, and to what.
fn applied<'a>(schema: &'a Value, bases: &[(&'a str, &'a Value)]) -> Vec<(Applied, &'a Value)> {
    let mut out = Vec::new();
    let Some(object) = schema.as_object() else {
        return out;
    };
    for (keyword, value) in object {
        let applied = match keyword.as_str() {
            "$ref" | "$dynamicRef" | "$recursiveRef" => {
                let targets = value.as_str().into_iter().flat_map(|reference| resolve(reference, bases));
                out.extend(targets.map(|target| (Applied::Here, target)));
                continue;
            }
            "allOf" | "anyOf" | "oneOf" | "not" | "if" | "then" | "else" | "dependentSchemas" | "dependencies"
            | "extends" => Applied::Here,
            "items"
            | "additionalItems"
            | "contains"
            | "additionalProperties"
            | "propertyNames"
            | "patternProperties"
            | "unevaluatedItems"
            | "unevaluatedProperties"
            | "contentSchema" => Applied::Below,
            "properties" | "prefixItems" => Applied::Field,
            _ => continue,
        };
        let named =
            matches!(keyword.as_str(), "properties" | "patternProperties" | "dependentSchemas" | "dependencies");
        match value {
            Value::Array(many) => out.extend(many.iter().map(|one| (applied, one))),
            Value::Object(many) if named => out.extend(many.values().map(|one| (applied, one))),
            one => out.push((applied, one)),
        }
    }
    out.retain(|(_, target)| target.is_object());
    out
}

/// The parts of a schema that have an identity of their own, the whole among them.
fn bases(root: &Value) -> Vec<(&str, &Value)> {
    let mut out = vec![("", root)];
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => {
                let id = fields.get("$id").or_else(|| fields.get("id")).and_then(Value::as_str);
                let anchor = ["$anchor", "$dynamicAnchor"].iter().find_map(|name| fields.get(*name)?.as_str());
                out.extend(id.or(anchor).map(|name| (name, value)));
                out.extend(id.and(anchor).map(|name| (name, value)));
                open.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    out
}

/// Everything a reference could mean. It is better to count too much than too little.
fn resolve<'a>(reference: &str, bases: &[(&'a str, &'a Value)]) -> Vec<&'a Value> {
    let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
    let uri = uri.trim_start_matches("./");
    let meant = |name: &str| uri.is_empty() || name.trim_end_matches('#').ends_with(uri);
    let fragment = decoded(fragment);
    if fragment.is_empty() || fragment.starts_with('/') {
        let bases = bases.iter().filter(|(name, _)| meant(name)).take(64);
        return bases.filter_map(|(_, base)| base.pointer(&fragment)).collect();
    }
    bases.iter().filter(|(name, _)| *name == fragment).take(64).map(|(_, base)| *base).collect()
}

/// A fragment without its percent signs.
fn decoded(fragment: &str) -> String {
    let mut out = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [byte, tail @ ..] = rest {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| *byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                rest = &tail[2..];
            }
            None => {
                out.push(*byte);
                rest = tail;
            }
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}
