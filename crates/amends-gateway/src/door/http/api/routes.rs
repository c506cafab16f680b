//! Every route of the API: its method, its path, and who may take it.

use super::fields::decoded;
use super::problem::Problem;
use crate::identity::Role::{self, Approver, Operator, Viewer};

/// A route. A part of its path in braces stands for any name.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) method: &'static str,
    pub(super) path: &'static str,
    pub(super) role: Role,
}

impl Route {
    /// Whether it shows or does what concerns every tenant.
    pub(super) fn is_of_the_house(&self) -> bool {
        let shared = ["/api/live", "/api/whatif", "/api/unclassified/proposals", "/api/checkpoints", "/api/verify"];
        shared.contains(&self.path)
    }
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Found {
    /// A route, and the names in the path.
    Route(&'static Route, Vec<String>),
    /// Only routes of those methods.
    OtherMethods(String),
    Nothing,
}

const fn get(path: &'static str) -> Route {
    Route { method: "GET", path, role: Viewer }
}

const fn post(path: &'static str, role: Role) -> Route {
    Route { method: "POST", path, role }
}

/// Every route.
pub(super) const ROUTES: [Route; 25] = [
    get("/api/openapi.json"),
    get("/api/me"),
    get("/api/live"),
    get("/api/sessions"),
    get("/api/sessions/{session}"),
    get("/api/sessions/{session}/links"),
    get("/api/sessions/{session}/walk"),
    get("/api/sessions/{session}/graph.svg"),
    get("/api/calls"),
    get("/api/calls/{call}"),
    get("/api/interactions"),
    get("/api/interactions/{interaction}"),
    post("/api/interactions/{interaction}/answer", Approver),
    get("/api/upstreams"),
    get("/api/tools"),
    get("/api/tools/{tool}"),
    get("/api/playbook"),
    post("/api/whatif", Viewer),
    get("/api/machines"),
    get("/api/machines/{machine}/graph.svg"),
    get("/api/unclassified"),
    post("/api/unclassified/proposals", Operator),
    get("/api/checkpoints"),
    post("/api/checkpoints", Operator),
    post("/api/verify", Operator),
];

/// Finds the route of a request.
pub(super) fn find(method: &str, path: &str) -> Result<Found, Problem> {
    let parts: Option<Vec<String>> = path.split('/').map(|part| decoded(part, false)).collect();
    let parts = parts.ok_or_else(|| Problem::field("path", "it is not UTF-8"))?;
    let mut allowed = Vec::new();
    for route in &ROUTES {
        let Some(names) = names(route.path, &parts) else { continue };
        // What is answered to a HEAD is what would be to a GET, without its body.
        if route.method == method || (method == "HEAD" && route.method == "GET") {
            return Ok(Found::Route(route, names));
        }
        allowed.push(route.method);
    }
    Ok(if allowed.is_empty() { Found::Nothing } else { Found::OtherMethods(allowed.join(", ")) })
}

/// The names in a path that has the form of a route; nothing where it has not.
fn names(form: &str, parts: &[String]) -> Option<Vec<String>> {
    let form: Vec<&str> = form.split('/').collect();
    if form.len() != parts.len() {
        return None;
    }
    let mut names = Vec::new();
    for (wanted, part) in form.iter().zip(parts) {
        match wanted.starts_with('{') {
            true if part.is_empty() => return None,
            true => names.push(part.clone()),
            false if *wanted == part => {}
            false => return None,
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_leads_to_its_route_or_to_what_it_would_take() {
        let Found::Route(route, names) = find("GET", "/api/sessions/ses%2F1/links").unwrap() else { panic!() };
        assert_eq!((route.path, names), ("/api/sessions/{session}/links", vec!["ses/1".to_owned()]));
        let Found::OtherMethods(allowed) = find("DELETE", "/api/checkpoints").unwrap() else { panic!() };
        assert_eq!(allowed, "GET, POST");
        assert!(matches!(find("GET", "/api/nothing").unwrap(), Found::Nothing));
        assert!(matches!(find("GET", "/api/sessions/").unwrap(), Found::Nothing));
        assert!(find("GET", "/api/sessions/%ff").is_err());
    }
}
