//! What tools need of each other: the readers of their status, and of what their calls are based on.

use std::collections::BTreeMap;

use amends_core::contract::Contract;

use super::settle::invalid;
use super::{ConfigError, ToolConfig};

/// A tool that another needs, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Need {
    part: &'static str,
    tool: String,
}

/// The tools that have to be called before that contract's tool, or to find out what became of it.
pub(super) fn of(contract: &Contract) -> Vec<Need> {
    let status = contract.status.iter().map(|status| Need { part: "status", tool: status.tool.clone() });
    let evidence = contract.evidence.iter().map(|reading| Need { part: "evidence", tool: reading.tool.clone() });
    status.chain(evidence).collect()
}

/// Refuses tools that need each other in a circle, and readers that are declared to write: reading a status must change nothing.
pub(super) fn check(
    needs: &BTreeMap<String, Vec<Need>>,
    tools: &BTreeMap<String, ToolConfig>,
) -> Result<(), ConfigError> {
    for (name, own) in needs {
        for need in own {
            let key = format!("tools.{name}.{}", need.part);
            if let Some(path) = way(needs, &need.tool, name) {
                return Err(ConfigError::Cycle { place: None, key, tool: name.clone(), path });
            }
            let effect = tools.get(&need.tool).and_then(|tool| tool.spec().effect);
            if let Some(effect) = effect.filter(|effect| !effect.is_read()) {
                let what = effect.as_str();
                let reason =
                    format!("`{}` is declared as `{what}`, and what is read here must change nothing", need.tool);
                return Err(invalid(&key, reason));
            }
        }
    }
    Ok(())
}

/// The way by which one tool comes to need another, both ends included; nothing where it does not.
fn way(needs: &BTreeMap<String, Vec<Need>>, from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_owned()]];
    let mut seen = Vec::new();
    // Ends: a tool is looked at only when it is new, and there are finitely many.
    while let Some(way) = ways.pop() {
        let last = way.last()?.clone();
        if last == to {
            return Some(way);
        }
        if seen.contains(&last) {
            continue;
        }
        let next = needs.get(&last).into_iter().flatten();
        ways.extend(next.map(|need| way.iter().cloned().chain([need.tool.clone()]).collect()));
        seen.push(last);
    }
    None
}

#[cfg(test)]
mod tests {
    use amends_core::Code;

    use super::super::{Source, Spec, settle};
    use super::*;

    fn refused(text: &str) -> ConfigError {
        Source::of(text.to_owned(), "test").settle().unwrap_err()
    }

    #[test]
    fn a_tool_that_needs_itself_is_refused_with_the_way_and_the_line() {
        let own = refused("[tools.pay]\nstatus = { tool = \"pay\", happened = \"true\" }");
        assert_eq!(own.code(), Code::DependencyCycle);
        assert_eq!(own.to_string(), "test:2: `tools.pay.status`: `pay` would need itself by way of `pay`");
        let far = refused(
            "[tools.a]\nevidence = [{ tool = \"b\" }]\n[tools.b]\nstatus = { tool = \"c\", happened = \"true\" }\n\
             [tools.c]\nevidence = [{ tool = \"a\" }]",
        );
        assert_eq!(far.code(), Code::DependencyCycle);
        assert!(far.to_string().ends_with("`a` would need itself by way of `b`, `c`, `a`"), "{far}");
    }

    #[test]
    fn a_reader_that_is_declared_to_write_is_refused() {
        let text =
            "[tools.pay]\nstatus = { tool = \"send\", happened = \"true\" }\n[tools.send]\neffect = \"idempotent\"";
        let error = refused(text);
        assert_eq!(error.code(), Code::ConfigSchemaViolation);
        assert!(error.to_string().contains("`send` is declared as `idempotent`"), "{error}");
    }

    #[test]
    fn readers_are_what_they_should_be() {
        let text = "[tools.pay]\nstatus = { tool = \"find\", happened = \"true\" }\nevidence = [{ tool = \"look\" }]\n\
                    [tools.find]\neffect = \"read\"\n[tools.refund]\nevidence = [{ tool = \"look\" }]";
        settle(Spec::parse(text, "test").unwrap()).unwrap();
    }
}
