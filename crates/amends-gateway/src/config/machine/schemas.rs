//! The schemas of machines: those that cannot be used, and the fields that do not fit them.

use amends_core::machine::{Does, Finding, Machine, Machines};
use amends_wire::Schema;
use serde_json::{Map, Value};

/// Words of a schema by which one property says something of another.
const JOINS: [&str; 5] = ["if", "anyOf", "oneOf", "not", "dependentSchemas"];

/// The schemas of a machine that cannot be used, and what of its fields does not fit.
pub(super) fn schemas(machine: &Machine, machines: &Machines) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut check = |at: &[&str], schema: Option<&Value>| -> Option<Schema> {
        let compiled = Schema::from_value(schema?.clone());
        compiled.map_err(|error| found.push(Finding::error(at, error.to_string(), "mend the schema"))).ok()
    };
    for (name, action) in machine.actions() {
        check(&["actions", name.as_str(), "input"], action.input.as_ref());
        if let Does::Allowed(allowed) = &action.does {
            check(&["actions", name.as_str(), "completion"], allowed.completion.as_ref());
        }
    }
    if let Some(typed) = check(&["state"], machine.schema()) {
        begun(machine, machines, &typed, &mut found);
        written(machine, &typed, &mut found);
    }
    found.into_iter().map(|finding| finding.of(machine.name().as_str())).collect()
}

/// Fields that do not fit when the machine is begun. What whoever runs it gives takes their place.
fn begun(machine: &Machine, machines: &Machines, typed: &Schema, found: &mut Vec<Finding>) {
    let runners: Vec<_> = machines.runners(machine.name()).map(|(.., action)| action).collect();
    let is_given = runners.iter().any(|action| !action.args.is_empty());
    // What is given may decide what else is asked for.
    let joined = machine.schema().is_some_and(|schema| JOINS.iter().any(|word| schema.get(*word).is_some()));
    if is_given && joined {
        return;
    }
    for fault in typed.check(&Value::Object(machine.begin().fields)) {
        let field = fault.field.split('.').next().unwrap_or_default();
        let lacking = runners.iter().filter(|action| !action.args.contains_key(field)).count();
        if is_given && (field.is_empty() || lacking == 0) {
            continue;
        }
        let message = format!("`{}` does not fit `state`: expected {}", fault.field, fault.expected);
        let fix = match lacking < runners.len() {
            true => "mend it, or the schema, or give it wherever this machine is run",
            false => "mend it, or the schema: the fields fit it at every moment, at the beginning too",
        };
        found.push(Finding::error(&["fields"], message, fix));
    }
}

/// Values that are written out and do not fit where they are written.
fn written(machine: &Machine, typed: &Schema, found: &mut Vec<Finding>) {
    let begun: Map<String, Value> = machine.begin().fields;
    let writes = machine.actions().flat_map(|(name, action)| action.writes.iter().map(move |write| (name, write)));
    for (name, (field, write)) in writes.filter(|(_, (_, write))| write.variables().is_empty()) {
        let Ok(value) = write.evaluate(&[]) else { continue };
        let mut fields = begun.clone();
        fields.insert(field.clone(), value);
        let about =
            |at: &str| at.strip_prefix(field.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let faults = typed.check(&Value::Object(fields));
        if let Some(fault) = faults.into_iter().find(|fault| about(&fault.field)) {
            let message =
                format!("`{}` does not fit `state`: `{field}` is expected to be {}", write.source(), fault.expected);
            let fix = "mend it, or the schema: an action that writes what does not fit never arrives";
            found.push(Finding::error(&["actions", name.as_str(), "writes", field], message, fix));
        }
    }
}
