//! `amends schema`: the envelope's JSON Schema, and the registry as data.

use std::process::ExitCode;

use amends_core::{envelope, registry};
use anyhow::Result;
use clap::{Args, ValueEnum};

use super::outcome::print;

/// The flags of `amends schema`.
#[derive(Debug, Args)]
pub(super) struct SchemaArgs {
    /// What to print.
    #[arg(value_enum, default_value_t = What::Envelope)]
    what: What,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum What {
    /// The JSON Schema of an envelope.
    Envelope,
    /// The JSON Schema of an envelope in MCP's `_meta`, beside a result that carries the data.
    Meta,
    /// Every class, code and refusal, with what is known of it.
    Codes,
}

pub(super) fn schema(args: SchemaArgs) -> Result<ExitCode> {
    let value = match args.what {
        What::Envelope => envelope::schema::whole(),
        What::Meta => envelope::schema::beside(),
        What::Codes => registry::json(),
    };
    print(&serde_json::to_string_pretty(&value)?)?;
    Ok(ExitCode::SUCCESS)
}
