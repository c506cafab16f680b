//! `amends machine graph`: draw a machine.

use std::process::ExitCode;

use amends_core::id::MachineName;
use amends_core::machine::graph::Marks;
use amends_core::nearest::nearest;
use amends_gateway::config::Config;
use anyhow::{Result, bail};

use super::GraphArgs;
use crate::cli::outcome::print;

pub(super) fn graph(args: &GraphArgs) -> Result<ExitCode> {
    let config = Config::load_wrap(&args.config)?;
    let Some(machine) = config.machines.get(&MachineName::new(args.name.as_str())) else {
        let known = config.machines.declared().map(|machine| machine.name().as_str());
        let hint = match nearest(&args.name, known).first() {
            Some(near) => format!("; did you mean `{near}`?"),
            None => String::new(),
        };
        bail!("`{}` declares no machine `{}`{hint}", args.config.display(), args.name);
    };
    let marks = Marks::default();
    let drawn = match args {
        _ if args.mermaid => machine.mermaid(&marks),
        _ if args.dot => machine.dot(&marks),
        _ if args.svg => machine.svg(&marks),
        _ => machine.text(&marks),
    };
    print(drawn.trim_end())?;
    Ok(ExitCode::SUCCESS)
}
