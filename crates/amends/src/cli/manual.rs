//! `amends completions` and `amends man`: what a shell and `man` know of the command line, generated from it.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use clap_mangen::Man;

use super::Cli;
use super::outcome::print;

const COMPLETIONS: &str = "\
Examples:
  source <(amends completions bash)                                     for this shell
  amends completions zsh > \"${fpath[1]}/_amends\"                        for every one
  amends completions fish > ~/.config/fish/completions/amends.fish";

const MAN: &str = "\
Examples:
  amends man | man --local-file -                                       the page of amends itself
  amends man --into ~/.local/share/man/man1                             a page for each command; then: man amends-trace";

/// The flags of `amends completions`.
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS)]
pub(super) struct CompletionsArgs {
    /// The shell they are for.
    #[arg(value_enum)]
    shell: Shell,
}

/// The flags of `amends man`.
#[derive(Debug, Args)]
#[command(after_help = MAN)]
pub(super) struct ManArgs {
    /// Writes a page for each command into this folder, which is made where there is none.
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

pub(super) fn completions(args: &CompletionsArgs) -> Result<ExitCode> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "amends", &mut script);
    print(String::from_utf8(script)?.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn man(args: &ManArgs) -> Result<ExitCode> {
    let command = Cli::command().disable_help_subcommand(true);
    match &args.into {
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            print(String::from_utf8(page)?.trim_end())?;
        }
        Some(folder) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
            clap_mangen::generate_to(command, folder)
                .with_context(|| format!("cannot write into `{}`", folder.display()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
