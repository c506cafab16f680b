//! `amends machine graph`: draw a machine.

use std::process::ExitCode;

use amends_core::id::MachineName;
use amends_core::machine::Machine;
use amends_core::machine::graph::{Marks, together};
use amends_core::nearest::nearest;
use amends_gateway::config::Config;
use anyhow::{Result, bail};

use super::GraphArgs;
use crate::cli::outcome::print;

pub(super) fn graph(args: &GraphArgs) -> Result<ExitCode> {
    let config = Config::load_wrap(&args.config)?;
    let Some(name) = &args.name else {
        let all: Vec<(&Machine, Marks)> = config.machines.declared().map(|it| (it, Marks::default())).collect();
        if all.is_empty() {
            bail!("`{}` declares no machine", args.config.display());
        }
        let drawn = match args.svg {
            true => together(&all),
            false => {
                all.iter().map(|(machine, _)| titled(machine, drawn(args, machine))).collect::<Vec<_>>().join("\n")
            }
        };
        print(drawn.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    };
    let Some(machine) = config.machines.get(&MachineName::new(name.as_str())) else {
        let known = config.machines.declared().map(|machine| machine.name().as_str());
        let hint = match nearest(name, known).first() {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        bail!("`{}` declares no machine `{name}`{hint}", args.config.display());
    };
    print(drawn(args, machine).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

fn drawn(args: &GraphArgs, machine: &Machine) -> String {
    let marks = Marks::default();
    match args {
        _ if args.mermaid => machine.mermaid(&marks),
        _ if args.dot => machine.dot(&marks),
        _ if args.svg => machine.svg(&marks),
        _ => machine.text(&marks),
    }
}

/// A drawing under the machine's name, where it does not say that itself.
fn titled(machine: &Machine, drawn: String) -> String {
    match drawn {
        drawn if drawn.starts_with("digraph") => drawn,
        drawn if drawn.starts_with("stateDiagram") => format!("%% {}\n{drawn}", machine.name()),
        drawn => format!("{}:\n{drawn}", machine.name()),
    }
}
