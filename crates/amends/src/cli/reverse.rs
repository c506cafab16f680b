//! `amends reverse` and `amends unwind`: undoing what was done.
//!
//! The upstream is reached by the gateway that runs, so the wish goes to it through the ledger.

use std::process::ExitCode;
use std::time::Duration;

use amends_core::SessionId;
use amends_gateway::driver::{Request, token_digest};
use amends_ledger::{Ledger, Letter};
use anyhow::{Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::stamp::now;

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The flags of `amends reverse`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  amends reverse rev_abc…")]
pub(super) struct ReverseArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The token, as the call's answer gave it.
    token: String,
    #[command(flatten)]
    wait: WaitArgs,
}

/// The flags of `amends unwind`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  amends unwind ses_abc…")]
pub(super) struct UnwindArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    /// The session whose writes are undone, newest first.
    session: String,
    #[command(flatten)]
    wait: WaitArgs,
}

#[derive(Debug, Args)]
struct WaitArgs {
    /// How many seconds to wait for a gateway to do it.
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    wait: u64,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl WaitArgs {
    const fn time(&self) -> Duration {
        Duration::from_secs(self.wait)
    }
}

pub(super) async fn reverse(args: ReverseArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let row = ledger.reversal(&token_digest(&args.token)).await?;
    let place = row.and_then(|row| row.undo).map(|undo| undo.place);
    let reply = ask(&*ledger, place, None, &Request::Reverse { token: args.token }, args.wait.time()).await?;
    let done = reply["status"] == "success";
    let words = match reply["error"]["message"].as_str() {
        Some(message) => message.to_owned(),
        None if done => "undone".to_owned(),
        None => reply.to_string(),
    };
    show(&reply, words, args.wait.json)?;
    Ok(ExitCode::from(u8::from(!done)))
}

pub(super) async fn unwind(args: UnwindArgs) -> Result<ExitCode> {
    let ledger = args.ledger.open().await?;
    let session = SessionId::new(args.session.as_str());
    let rows = ledger.reversals_of(&session).await?;
    if rows.is_empty() {
        bail!("the session `{session}` has nothing that could be undone");
    }
    let place = rows.into_iter().find_map(|row| row.undo).map(|undo| undo.place);
    let request = Request::Unwind { session: session.clone() };
    let reply = ask(&*ledger, place, Some(session), &request, args.wait.time()).await?;
    let undone = reply["undone"].as_array().cloned().unwrap_or_default();
    let failed = undone.iter().filter(|one| one["result"]["status"] != "success").count();
    let mut words = String::new();
    for one in &undone {
        let how = match (&one["result"]["status"], one["result"]["error"]["message"].as_str()) {
            (Value::String(status), None) if status == "success" => "undone",
            (_, Some(message)) => message,
            _ => one["result"]["refused"].as_str().unwrap_or("not undone"),
        };
        words.push_str(&format!("{}  {how}\n", one["call"].as_str().unwrap_or_default()));
    }
    if undone.is_empty() {
        words.push_str("nothing was left to undo");
    }
    show(&reply, words.trim_end().to_owned(), args.wait.json)?;
    Ok(ExitCode::from(u8::from(failed > 0 || reply.get("error").is_some())))
}

/// Posts a wish and waits for a gateway to say what came of it.
pub(super) async fn ask(
    ledger: &dyn Ledger,
    place: Option<String>,
    session: Option<SessionId>,
    request: &Request,
    wait: Duration,
) -> Result<Value> {
    let id = ledger.post(Letter { place, session, body: serde_json::to_value(request)? }, now()).await?;
    let began = std::time::Instant::now();
    loop {
        let state = ledger.letter(id).await?;
        if let Some(reply) = state.as_ref().and_then(|state| state.reply.clone()) {
            return Ok(reply);
        }
        if began.elapsed() > wait {
            let taken = state.is_some_and(|state| state.taken);
            if taken {
                bail!("a gateway is at it, and has not said yet what came of it; `amends trace` shows how it goes");
            }
            bail!("no gateway that reaches this upstream runs on this ledger; it will be done when one starts");
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn show(reply: &Value, words: String, as_json: bool) -> Result<()> {
    if as_json { print(&serde_json::to_string_pretty(&json!({ "reply": reply }))?) } else { print(&words) }
}
