//! The `amends` binary: reads the command line and starts what it names.

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("AMENDS_LOG").unwrap_or_else(|_| "warn".into());
    let colour = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colour).init();
    match amends::cli::run(amends::cli::Cli::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("amends: {error:#}");
            ExitCode::from(2)
        }
    }
}
