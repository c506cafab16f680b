//! An API as its document describes it: operations, servers, and what it wants to be shown.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use amends_core::EffectKind;
use hyper::Method;
use serde_json::Value;

use super::document::{Document, DocumentError, Node};
use super::limits::{NAME_MAX, OPERATIONS_MAX};
use super::operation::{Operation, Unserved};

/// An API as its document describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Api {
    /// Its title.
    pub(crate) title: String,
    /// Its version.
    pub(crate) version: String,
    /// The address of its first server, where that is a whole one.
    pub base_url: Option<String>,
    /// The security schemes that can be used, by name.
    pub schemes: BTreeMap<String, Scheme>,
    pub(crate) operations: Vec<Operation>,
    /// What is not served, and why: the pointer, and the reason in words.
    pub(crate) unserved: Vec<(String, String)>,
}

/// Where the credential of a security scheme goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// Into a header, after that word.
    Header {
        /// The header.
        name: String,
        /// What goes before the credential, unless it says so itself.
        word: &'static str,
    },
    /// Into the query.
    Query(String),
    /// Into a cookie.
    Cookie(String),
}

impl Api {
    /// Reads the document in a file.
    pub fn read(path: &Path) -> Result<Self, DocumentError> {
        Self::of(&Document::read(path)?)
    }

    /// Reads the document in a text. `origin` stands for the file in what is said about it.
    pub fn parse(text: String, origin: &str) -> Result<Self, DocumentError> {
        Self::of(&Document::parse(text, origin)?)
    }

    /// The same where every operation is asked for at one server, whatever the document says.
    pub(crate) fn at_one_server(mut self) -> Self {
        for operation in &mut self.operations {
            operation.elsewhere = false;
        }
        self
    }

    /// The operations that are served.
    pub(crate) fn served(&self) -> impl Iterator<Item = &Operation> {
        self.operations.iter().filter(|operation| !operation.elsewhere)
    }

    /// What the operation of that name does to the world, by its method.
    pub(crate) fn effect(&self, name: &str) -> Option<EffectKind> {
        let operation = self.served().find(|operation| operation.name == name)?;
        Some(match (operation.reads(), operation.is_idempotent()) {
            (true, _) => EffectKind::Read,
            (false, true) => EffectKind::Idempotent,
            (false, false) => EffectKind::Write,
        })
    }

    fn of(document: &Document) -> Result<Self, DocumentError> {
        let root = document.root();
        let info = root.get("info");
        let said = |name: &str| info.as_ref().and_then(|info| info.text(name)).unwrap_or_default().to_owned();
        let paths = root.get("paths").filter(|paths| paths.value.is_object());
        let Some(paths) = paths else {
            return Err(document.refused("/paths", "there is no `paths`, so there is nothing to call"));
        };
        let mut api = Self {
            title: said("title"),
            version: said("version"),
            base_url: base_url(document),
            schemes: schemes(document)?,
            operations: Vec::new(),
            unserved: Vec::new(),
        };
        let mut names = BTreeSet::new();
        for (path, item) in paths.members() {
            if path.starts_with("x-") {
                continue;
            }
            if !path.starts_with('/') {
                return Err(document.refused(&item.pointer, "a path begins with `/`"));
            }
            let item = document.follow(item)?;
            for (method, node) in Operation::at(&item) {
                if api.operations.len() + api.unserved.len() >= OPERATIONS_MAX {
                    return Err(document.refused(&node.pointer, "there are more operations than we take"));
                }
                let name = name(&mut names, &method, path, node.text("operationId"));
                match Operation::read(document, name, method, (path, &item), &node) {
                    Ok(operation) => api.operations.push(operation),
                    Err(Unserved::Because(reason)) => api.unserved.push((node.pointer, reason)),
                    Err(Unserved::Wrong(error)) => return Err(error),
                }
            }
        }
        Ok(api)
    }
}

/// The name of a tool: the operation's own as far as it can be one, else its method and path.
fn name(taken: &mut BTreeSet<String>, method: &Method, path: &str, id: Option<&str>) -> String {
    let given = id.map(sound).filter(|id| id.contains(|c: char| c.is_ascii_alphanumeric()));
    let plain = given.unwrap_or_else(|| sound(&format!("{}{}", method.as_str().to_ascii_lowercase(), path)));
    let candidates = (1..).map(|n: u32| if n == 1 { plain.clone() } else { format!("{plain}_{n}") });
    let name = candidates.into_iter().find(|name| !taken.contains(name)).expect("there are more numbers than names");
    taken.insert(name.clone());
    name
}

/// A text in the letters that names are made of; whatever is between them becomes one underscore.
fn sound(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() || c == '_' || c == '-' {
            out.push(c);
        } else if !out.ends_with('_') {
            out.push('_');
        }
    }
    out.truncate(NAME_MAX - 4);
    out.trim_matches('_').to_owned()
}

/// The address of the first server, its variables filled in with their defaults.
fn base_url(document: &Document) -> Option<String> {
    let server = document.root().get("servers")?.items().next()?;
    let mut url = server.text("url")?.to_owned();
    for (name, variable) in server.get("variables").iter().flat_map(Node::members) {
        url = url.replace(&format!("{{{name}}}"), variable.text("default").unwrap_or_default());
    }
    let whole = url.starts_with("http://") || url.starts_with("https://");
    (whole && !url.contains('{')).then_some(url)
}

fn schemes(document: &Document) -> Result<BTreeMap<String, Scheme>, DocumentError> {
    let mut found = BTreeMap::new();
    let declared = document.root().get("components").and_then(|components| components.get("securitySchemes"));
    for (name, node) in declared.iter().flat_map(Node::members) {
        let node = document.follow(node)?;
        let authorization = |word| Scheme::Header { name: "authorization".into(), word };
        let scheme = match (node.text("type"), node.value.get("scheme").and_then(Value::as_str), node.text("in")) {
            (Some("http"), Some(word), _) if word.eq_ignore_ascii_case("basic") => authorization("Basic "),
            (Some("http"), Some(word), _) if word.eq_ignore_ascii_case("bearer") => authorization("Bearer "),
            (Some("oauth2" | "openIdConnect"), ..) => authorization("Bearer "),
            (Some("apiKey"), _, Some(place)) => {
                let Some(parameter) = node.text("name").map(str::to_owned) else {
                    return Err(document.refused(&node.pointer, "an API key has a `name`"));
                };
                match place {
                    "header" => Scheme::Header { name: parameter.to_ascii_lowercase(), word: "" },
                    "query" => Scheme::Query(parameter),
                    "cookie" => Scheme::Cookie(parameter),
                    _ => {
                        return Err(document.refused(&node.pointer, "an API key is `in` `header`, `query` or `cookie`"));
                    }
                }
            }
            _ => continue,
        };
        found.insert(name.to_owned(), scheme);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn api(text: &str) -> Result<Api, DocumentError> {
        Api::parse(text.to_owned(), "shop.yaml")
    }

    const SHOP: &str = include_str!("shop.yaml");

    #[test]
    fn operations_become_tools_by_their_own_names_or_by_method_and_path() {
        let api = api(SHOP).unwrap();
        let names: Vec<&str> = api.operations.iter().map(|operation| operation.name.as_str()).collect();
        assert_eq!(names, ["get_orders", "create_order", "getOrder", "replaceOrder", "get_orders_order_refunds"]);
        assert_eq!(api.base_url.as_deref(), Some("https://eu.shop.example/v1"));
        let reasons: Vec<&str> = api.unserved.iter().map(|(_, reason)| reason.as_str()).collect();
        assert_eq!(reasons, ["its body is in the form `text/csv`"]);
        assert_eq!(api.schemes["token"], Scheme::Header { name: "authorization".into(), word: "Bearer " });
    }

    #[test]
    fn arguments_are_flat_where_no_name_is_there_twice() {
        let api = api(SHOP).unwrap();
        let input = |name: &str| {
            let found = api.operations.iter().find(|operation| operation.name == name);
            found.map(|operation| operation.input.clone()).unwrap()
        };
        let create = input("create_order");
        assert_eq!(create["required"], json!(["item"]));
        assert_eq!(create["properties"]["item"], json!({"type": "string"}));
        assert_eq!(create["properties"]["note"], json!({"$ref": "#/$defs/Note"}));
        assert_eq!(create["$defs"]["Note"], json!({"type": ["string", "null"], "maxLength": 80}));
        assert!(create["properties"].get("id").is_none(), "only the API writes it");
        // `id` is in the path and in the body.
        let replace = input("replaceOrder");
        assert_eq!(replace["required"], json!(["id", "body"]));
        assert_eq!(replace["properties"]["body"]["properties"]["id"], json!({"type": "string"}));
        assert_eq!(input("getOrder")["properties"]["id"], json!({"type": "string", "minLength": 1}));
    }

    #[test]
    fn mistakes_are_told_with_the_line_and_the_pointer() {
        let head = "openapi: 3.0.0\npaths:\n";
        for (text, says) in [
            ("  orders: {}\n", "shop.yaml:3: `#/paths/orders`: a path begins with `/`"),
            ("  /a/{b}:\n    get: {}\n", "shop.yaml:4: `#/paths/~1a~1{b}/get`: the path names `{b}`"),
            ("  /a:\n    get: 3\n", "shop.yaml:4: `#/paths/~1a/get`: an operation is an object"),
            (
                "  /a:\n    get:\n      parameters:\n        - name: x\n",
                "shop.yaml:6: `#/paths/~1a/get/parameters/0`: a parameter is `in`",
            ),
            (
                "  /a:\n    get:\n      parameters:\n        - $ref: 'https://example.com/p.yaml'\n",
                "shop.yaml:6: `#/paths/~1a/get/parameters/0`: `https://example.com/p.yaml` is elsewhere",
            ),
            (
                "  /a:\n    post:\n      requestBody:\n        content: {application/json: {schema: {$ref: '#/no'}}}\n",
                "shop.yaml:6: `#/paths/~1a/post/requestBody/content/application~1json/schema`: it refers to `#/no`",
            ),
            ("  /a:\n    post: {requestBody: {}}\n", "shop.yaml:4: `#/paths/~1a/post/requestBody`: a request body"),
        ] {
            let refused = api(&format!("{head}{text}")).unwrap_err().to_string();
            assert!(refused.starts_with(says), "{refused}");
        }
        assert!(api("openapi: 3.0.0\n").unwrap_err().to_string().contains("there is no `paths`"));
    }

    #[test]
    fn whatever_is_in_a_document_nothing_panics() {
        let mut dice = 7_u64;
        let mut roll = |below: usize| {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (dice >> 33) as usize % below
        };
        let words =
            ["{", "}", "[", "]", ": ", "- ", "\n", "&a ", "*a", "$ref: '#/paths'", "null", "3", "\u{0}", "é", "<<: *a"];
        for _ in 0..2_000 {
            let mut text: Vec<char> = SHOP.chars().collect();
            for _ in 0..=roll(4) {
                let at = roll(text.len());
                match roll(3) {
                    0 => drop(text.drain(at..(at + roll(40)).min(text.len()))),
                    1 => drop(text.splice(at..at, words[roll(words.len())].chars()).collect::<Vec<_>>()),
                    _ => text.truncate(at.max(1)),
                }
            }
            let text: String = text.into_iter().collect();
            if let Ok(api) = api(&text) {
                for operation in &api.operations {
                    let _ = operation.request(r#"{"id":"a","order":"b","item":[],"body":{}}"#);
                }
                super::super::propose::propose(&api, "shop.yaml", "shop");
            }
        }
    }

    #[test]
    fn what_refers_to_too_much_is_left_unsaid_or_unserved() {
        let schemas: String = (0..600)
            .map(|n| {
                format!("    S{n}: {{type: object, properties: {{n: {{$ref: '#/components/schemas/S{}'}}}}}}\n", n + 1)
            })
            .collect();
        let text = format!(
            "openapi: 3.1.0\npaths:\n  /a:\n    get:\n      responses: {{'200': {{content: {{application/json: {{schema: {{$ref: '#/components/schemas/S0'}}}}}}}}}}\n    \
             post:\n      requestBody: {{content: {{application/json: {{schema: {{$ref: '#/components/schemas/S0'}}}}}}}}\n\
             components:\n  schemas:\n{schemas}    S600: {{}}\n"
        );
        let api = api(&text).unwrap();
        assert_eq!((api.operations.len(), &api.operations[0].output), (1, &None));
        assert_eq!(api.unserved[0].1, "what it takes refers to too many schemas");
    }

    #[test]
    fn names_are_sound_and_each_is_there_once() {
        let text = "openapi: 3.1.0\npaths:\n  /a/b:\n    get: {operationId: 'x y'}\n    post: {operationId: x_y}\n    \
                    put: {operationId: '…'}\n";
        let names: Vec<String> = api(text).unwrap().operations.into_iter().map(|operation| operation.name).collect();
        assert_eq!(names, ["x_y", "put_a_b", "x_y_2"]);
    }
}
