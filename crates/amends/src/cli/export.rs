//! `amends export`: sessions as lines that another ledger takes in, or as a table.

pub(super) mod line;
mod session;
mod table;

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use amends_core::{SessionId, Timestamp};
use amends_gateway::config::Span;
use amends_ledger::{Ledger, SessionRow, Trace};
use anyhow::{Context, Result, anyhow, bail};
use clap::{Args, ValueEnum};

use session::Sessions;

use super::ledger::LedgerArgs;
use super::stamp::now;

/// How many sessions are listed at a time.
const PAGE: usize = 256;

const EXAMPLES: &str = "\
Examples:
  amends export --output all.jsonl                  every session, for `amends import`
  amends export --since 7d --format csv -o week.csv one row for each call of the last week
  amends export --session ses_abc…                  one session, to standard output
  amends export --session ses_abc… --answers        the same with what its tools gave, for scenarios

Arguments as they were sent are not exported, nor are answers without --answers.";

/// The flags of `amends export`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ExportArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Only sessions that began in this time up to now, such as `7d`.
    #[arg(long, value_name = "SPAN", conflicts_with = "session")]
    since: Option<String>,
    /// Only this session.
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// `jsonl`: one line for each session and event, with their hashes. `csv`: one row for each call.
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Also what tools gave, as it is and as long as the ledger keeps it, so that scenarios can replay it. It may be private.
    #[arg(long)]
    answers: bool,
    /// The file to write; `-` is standard output.
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Jsonl,
    Csv,
}

pub(super) async fn export(args: ExportArgs) -> Result<ExitCode> {
    if args.answers && matches!(args.format, Format::Csv) {
        bail!("a table has no answers; drop `--answers`, or the `--format csv`");
    }
    let ledger = args.ledger.open().await?;
    let since = match &args.since {
        Some(text) => since(text)?,
        None => Timestamp::default(),
    };
    let to_stdout = args.output.as_os_str() == "-";
    let mut out: Box<dyn Write> = if to_stdout {
        Box::new(BufWriter::new(std::io::stdout()))
    } else {
        let file = File::create(&args.output).with_context(|| format!("cannot write `{}`", args.output.display()))?;
        Box::new(BufWriter::new(file))
    };
    match write_all(&*ledger, &args, since, &mut *out).await {
        Ok(count) => {
            clear_progress();
            eprintln!("{count} sessions exported");
            Ok(ExitCode::SUCCESS)
        }
        // A reader that has seen enough is no error.
        Err(error) if to_stdout && is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        Err(error) => Err(error),
    }
}

async fn write_all(ledger: &dyn Ledger, args: &ExportArgs, since: Timestamp, out: &mut dyn Write) -> Result<u64> {
    match args.format {
        Format::Jsonl => line::write_header(out)?,
        Format::Csv => table::write_header(out)?,
    }
    let mut count = 0;
    let mut sessions = Sessions::of(ledger, args.format, args.answers);
    if let Some(id) = &args.session {
        let (row, trace) = one(ledger, &SessionId::new(id.as_str())).await?;
        sessions.write(&row, &trace, out).await?;
        count = 1;
    } else {
        let mut after = None;
        loop {
            let page = ledger.sessions_after(since, after.as_ref(), PAGE).await?;
            let Some(last) = page.last().cloned() else { break };
            for row in page {
                // A row is older than the events that were appended since: they are told by their trace.
                if let Some(trace) = ledger.trace(&row.session).await? {
                    sessions.write(&row, &trace, out).await?;
                    count += 1;
                    progress(count);
                }
            }
            after = Some(last);
        }
    }
    out.flush()?;
    sessions.tell();
    Ok(count)
}

/// A session and its row, which is found by walking from when it began.
async fn one(ledger: &dyn Ledger, id: &SessionId) -> Result<(SessionRow, Trace)> {
    let unknown = || anyhow!("there is no session `{id}` in this ledger; `amends sessions` lists what there is");
    let trace = ledger.trace(id).await?.ok_or_else(unknown)?;
    let whole = trace.cut == 0;
    let since = trace.events.first().filter(|_| whole).map(|stored| stored.event.at).unwrap_or_default();
    let mut after = None;
    loop {
        let page = ledger.sessions_after(since, after.as_ref(), PAGE).await?;
        if let Some(row) = page.iter().find(|row| row.session == *id) {
            return Ok((row.clone(), trace));
        }
        after = Some(page.last().cloned().ok_or_else(unknown)?);
    }
}

fn since(text: &str) -> Result<Timestamp> {
    let Some(Span(span)) = Span::parse(text) else { bail!("`{text}` is not a length of time such as `12h` or `7d`") };
    let ms = u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    Ok(Timestamp::from_ms(now().ms().saturating_sub(ms)))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
}

/// Shows on a terminal how far it is.
pub(super) fn progress(count: u64) {
    if count.is_multiple_of(100) && std::io::stderr().is_terminal() {
        eprint!("\r{count} sessions");
    }
}

/// Takes what [`progress`] showed away again.
pub(super) fn clear_progress() {
    if std::io::stderr().is_terminal() {
        eprint!("\r");
    }
}
