//! `amends forget`: drop the events of a session.

use std::process::ExitCode;
use std::time::Duration;

use amends_core::dispatcher::retire::RetireReason;
use amends_core::{CallId, SessionId};
use amends_gateway::driver::{Request, Retirement, retire};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::reverse::ask;
use super::stamp::now;

const EXAMPLES: &str = "\
Examples:
  amends forget ses_abc… --yes      drop a session's events, arguments and answers
  amends forget call_abc… --yes     the same for the session of a call

One event stays that says how many were dropped, so that the chain can still be verified. Exit codes: 0 it is gone, 1 it
cannot be dropped now, 2 the command could not do its work.";

/// The flags of `amends forget`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ForgetArgs {
    /// A session (`ses_…`) or a call (`call_…`), whose whole session goes.
    id: String,
    #[command(flatten)]
    ledger: LedgerArgs,
    /// Yes, drop it: it cannot be brought back.
    #[arg(long)]
    yes: bool,
    /// How many seconds to wait for the gateway that holds the session.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    wait: u64,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn forget(args: ForgetArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let unknown = format!("there is no `{}` in this ledger; `amends sessions` lists what there is", args.id);
    let session = if args.id.starts_with("call_") {
        let Some(session) = ledger.session_of(&CallId::new(args.id.as_str())).await? else { bail!("{unknown}") };
        session
    } else {
        SessionId::new(args.id.as_str())
    };
    if !args.yes {
        bail!("this drops everything that is known of `{session}` and cannot be undone; say so with --yes");
    }
    let reply = match retire(&*ledger, &session, RetireReason::Forgotten, now()).await? {
        Retirement::Done { events } => json!({ "forgotten": events }),
        Retirement::Before => json!({ "forgotten": 0 }),
        Retirement::Unknown => bail!("{unknown}"),
        Retirement::NotYet { why } => json!({ "refused": why }),
        // The gateway that holds its lease does it for us.
        Retirement::Elsewhere => {
            let request = Request::Forget { session: session.clone() };
            ask(&*ledger, ledger.holder(&session).await?, None, &request, Duration::from_secs(args.wait)).await?
        }
    };
    let done = reply.get("forgotten").is_some();
    if args.json {
        print(&json!({ "session": session, "reply": reply }).to_string())?;
    } else {
        print(&words(&session, &reply))?;
    }
    Ok(ExitCode::from(u8::from(!done)))
}

fn words(session: &SessionId, reply: &Value) -> String {
    match (reply["forgotten"].as_u64(), reply["refused"].as_str()) {
        (Some(0), _) => format!("{session} was retired before"),
        (Some(events), _) => format!("{session} is forgotten: {events} events were dropped"),
        (None, Some(why)) => format!("{session} is not forgotten: {why}"),
        (None, None) => format!("{session} is not forgotten: {}", reply["error"].as_str().unwrap_or("no reason given")),
    }
}
