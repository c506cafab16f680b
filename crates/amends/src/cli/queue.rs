//! `amends queue` and `amends answer`: the questions that wait for a person.

use std::process::ExitCode;
use std::time::Duration;

use amends_core::interaction::choice;
use amends_core::{InteractionId, PersonAnswer, Tenant};
use amends_gateway::compared::{Difference, Line, QUESTIONS_MAX, differences};
use amends_gateway::{form, told};
use amends_ledger::{AnswerFate, Ledger, QueueFilter, QueueState};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::{Value, json};

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::remote::{Remote, RemoteArgs, encoded};
use super::stamp::{now, utc};

const WAIT: Duration = Duration::from_secs(3);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The flags of `amends queue`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  amends queue\n  amends queue --queue refunds --json\n  amends queue --all")]
pub(super) struct QueueArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Only this queue.
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// Only this tenant's.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// Also what was answered or is over.
    #[arg(long)]
    all: bool,
    /// How many to list.
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The flags of `amends answer`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  amends answer int_abc… happened\n  amends answer int_abc… approve --note 'spoke to the bank'\n  amends answer int_abc… approve --for arguments"
)]
pub(super) struct AnswerArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// The question, as `amends queue` shows it.
    id: String,
    /// One of its options.
    choice: String,
    /// Who answers. The default is the user's name; a gateway that is asked with --url knows by the token.
    #[arg(long, value_name = "NAME")]
    by: Option<String>,
    /// For what else a yes to a call is good: the tool in its `session`, or the same `arguments` until it is taken back.
    #[arg(long = "for", value_name = "SCOPE", value_parser = ["session", "arguments"])]
    scope: Option<String>,
    /// What you want to add; it is kept on the trace.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    /// What is asked for, as JSON, with the answer `answer`; or what a call gave, with the answer `happened`.
    #[arg(long, value_name = "JSON")]
    content: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn queue(args: QueueArgs) -> Result<ExitCode> {
    // Also what is over: it may hold what was read before.
    let (entries, kept) = match args.remote.named(&args.ledger)? {
        Some(remote) => {
            let queue = args.queue.as_deref();
            let kept = remote.queue(queue, true, QUESTIONS_MAX).await?;
            (remote.queue(queue, args.all, args.limit).await?, kept)
        }
        None => {
            let filter = QueueFilter { queue: args.queue, tenant: args.tenant.map(Tenant::new), all: args.all };
            let ledger = args.ledger.open().await?;
            let kept = ledger.queue(&QueueFilter { all: true, ..filter.clone() }, QUESTIONS_MAX).await?;
            (ledger.queue(&filter, args.limit).await?, kept)
        }
    };
    if args.json {
        let entries: Vec<Value> = entries.iter().map(told::question).collect();
        print(&serde_json::to_string_pretty(&json!({ "queue": entries }))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if entries.is_empty() {
        eprintln!("nobody is asked anything");
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for entry in &entries {
        let asked = &entry.interaction;
        let state = match (entry.state, &entry.answer) {
            (QueueState::Open, _) if asked.due <= now() => format!("overdue since {}", utc(asked.due)),
            (QueueState::Open, _) => format!("due {}", utc(asked.due)),
            (_, Some(answer)) => format!("{} by {}", answer.choice, answer.by),
            (state, None) => told::standing(state).to_owned(),
        };
        let form = asked.form().filter(|form| form.choices.is_empty());
        let form = form.map(|form| format!("  asked for: {}\n", form.schema)).unwrap_or_default();
        let gives = asked.gives.as_ref().map(|schema| format!("  it gives, with --content: {schema}\n"));
        let form = form + &gives.unwrap_or_default();
        let view = asked.view.as_ref().map(|view| format!("  `{}` {view}\n", asked.tool)).unwrap_or_default();
        let changed: String = differences(entry, &[], &kept).iter().map(changed).collect();
        text.push_str(&format!(
            "{}\n  {} about {} on `{}`, {state}\n  {}\n{form}{view}{changed}  answers: {} (else {})\n\n",
            asked.id,
            asked.kind.as_str(),
            asked.call,
            asked.queue,
            asked.question,
            asked.options.join(", "),
            asked.default,
        ));
    }
    print(text.trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// What something said that a question is based on, and what it says.
fn changed(difference: &Difference) -> String {
    let (was, is) = difference.lines();
    let only = |sign: char, lines: &[Line]| -> String {
        lines.iter().filter(|(only, _)| *only).map(|(_, line)| format!("    {sign} {line}\n")).collect()
    };
    format!("  changed since it was asked before: `{}`\n{}{}", difference.tool, only('-', &was), only('+', &is))
}

pub(super) async fn answer(args: AnswerArgs) -> Result<ExitCode> {
    let content = args.content.as_deref().map(serde_json::from_str::<Value>).transpose();
    let content = content.context("`--content` is not JSON")?;
    if let Some(remote) = args.remote.named(&args.ledger)? {
        return answer_there(&remote, &args, content).await;
    }
    let ledger = args.ledger.open().await?;
    let id = InteractionId::new(args.id.as_str());
    let by = args.by.or_else(|| std::env::var("USER").ok()).unwrap_or_else(|| "operator".into());
    let choice = match args.scope {
        Some(scope) if args.choice == choice::APPROVE => format!("{}_{scope}", choice::APPROVE),
        Some(_) => bail!("only an `{}` can be good for more than one call", choice::APPROVE),
        None => args.choice,
    };
    let mut answer = PersonAnswer { choice, by, note: args.note, at: now(), content: None };
    // It is kept with the question until a gateway takes it up, and masks it once more.
    args.ledger.mask()?.answer(&mut answer);
    if let Some(entry) = ledger.interaction(&id).await?
        && let Err(why) = form::fill(&entry.interaction, &mut answer, content)
    {
        bail!("that is no answer to `{id}`: {why}");
    }
    let (word, words, code) = match ledger.answer_interaction(&id, answer).await? {
        AnswerFate::Taken if acted_on(&*ledger, &id).await? => ("taken", "taken, and acted on".to_owned(), 0),
        AnswerFate::Taken => {
            let words = "taken; it is acted on as soon as a gateway runs on this ledger";
            ("taken", words.to_owned(), 0)
        }
        AnswerFate::Late { choice, by, at } => {
            ("late", format!("too late: {by} answered `{choice}` at {}", utc(at)), 1)
        }
        AnswerFate::Closed(closing) => ("closed", format!("too late: the question is {}", told::over(closing)), 1),
        AnswerFate::Barred => {
            let words = "this yes does not count: who called may not say yes, and nobody twice";
            ("barred", words.to_owned(), 1)
        }
        AnswerFate::NotAnOption { options } => {
            bail!("that is no answer to `{id}`; it takes `{}`", options.join("`, `"))
        }
        AnswerFate::Unknown => bail!("there is no question `{id}`; `amends queue` lists those that are open"),
    };
    if args.json {
        print(&json!({ "interaction": id, "fate": word, "message": words }).to_string())?;
    } else {
        print(&words)?;
    }
    Ok(ExitCode::from(code))
}

/// Gives the answer to a gateway that runs, under the name of whoever has the token.
async fn answer_there(remote: &Remote, args: &AnswerArgs, content: Option<Value>) -> Result<ExitCode> {
    if args.by.is_some() {
        bail!("--by is for a ledger; a gateway knows who answers by the token");
    }
    let mut body = json!({ "choice": args.choice });
    if let Some(note) = &args.note {
        body["note"] = json!(note);
    }
    if let Some(content) = content {
        body["content"] = content;
    }
    let (status, said) = remote.post(&format!("/api/interactions/{}/answer", encoded(&args.id)), &body).await?;
    print(&if args.json { said.to_string() } else { said["message"].as_str().unwrap_or_default().to_owned() })?;
    Ok(ExitCode::from(u8::from(!status.is_success())))
}

/// Whether a gateway takes the answer up within a moment.
async fn acted_on(ledger: &dyn Ledger, id: &InteractionId) -> Result<bool> {
    let began = std::time::Instant::now();
    while began.elapsed() < WAIT {
        let entry = ledger.interaction(id).await?;
        if entry.is_none_or(|entry| matches!(entry.state, QueueState::Closed(_))) {
            return Ok(true);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    Ok(false)
}
