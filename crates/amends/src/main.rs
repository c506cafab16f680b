//! The `amends` binary: reads the command line and starts what it names.

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    // It waits beside every gateway that has children, and needs neither threads nor a command line.
    if amends::cli::stands_guard(std::env::args_os()) {
        return ExitCode::SUCCESS;
    }
    match threads().build() {
        Ok(runtime) => runtime.block_on(run()),
        Err(error) => {
            eprintln!("amends: no threads to work with: {error}");
            ExitCode::from(2)
        }
    }
}

/// One thread for each processor but one, which the ledger's writer keeps busy. `TOKIO_WORKER_THREADS` says otherwise.
fn threads() -> tokio::runtime::Builder {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.enable_all();
    if std::env::var_os("TOKIO_WORKER_THREADS").is_none() {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        threads.worker_threads(processors.saturating_sub(1).max(1));
    }
    threads
}

async fn run() -> ExitCode {
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
