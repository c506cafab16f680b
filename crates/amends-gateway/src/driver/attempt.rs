//! Sending an attempt, and turning what came of it into a report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::attempt::{Payload, Recorded};
use amends_core::contract::{Contract, Place};
use amends_core::gates::UNSEEN_RUN;
use amends_core::limits::WAIT_MS_MAX;
use amends_core::{Attempt, AttemptId, Certainty, Code, Failure, Purpose, Report, Rules};
use amends_ledger::digest;
use amends_wire::mcp::classify::{self, Signal, structured};
use amends_wire::mcp::shape::shape;
use amends_wire::mcp::{Edits, Era, ProgressToken, ToolCall, era};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};

use super::session::{Carried, Live, Mail, Session};
use crate::catalogue::ServedTool;
use crate::clock;
use crate::gateway::Gateway;
use crate::upstream::{Exchange, Fault, Reply, Request};

/// How long a cancelled or timed-out attempt is still listened for.
const LATE_MS: u64 = 60_000;
/// How often a joined call looks for its answer when nobody tells it.
const JOIN_POLL: Duration = Duration::from_millis(100);

/// Sends an attempt. What comes of it arrives as mail.
pub(super) fn send(session: &mut Session, attempt: Attempt) {
    let mail = session.mail.clone();
    let gateway = session.gateway.clone();
    let Some(live) = session.live.get_mut(&attempt.id.call) else {
        return;
    };
    // A step that was decided again must not send again what is on its way.
    if live.attempts.contains_key(&attempt.id) || live.results.contains_key(&attempt.id) {
        return;
    }
    let (abort, aborted) = oneshot::channel();
    live.attempts.insert(attempt.id.clone(), abort);
    if attempt.purpose == Purpose::Join {
        tokio::spawn(join(gateway, attempt, aborted, mail));
        return;
    }
    if let Some(key) = &attempt.effect_key {
        // A call that took over another's doubt goes on with its key.
        live.effect_key.clone_from(key);
    }
    let prepared = prepare(&gateway, live, &attempt);
    if !live.rules.contract.effect.is_read() {
        session.listening.insert(attempt.id.clone());
    }
    tokio::spawn(async move {
        let id = attempt.id.clone();
        let (mut report, carried) = match prepared {
            Ok(outgoing) => exchange(outgoing, aborted).await,
            Err(code) => (Report::silent(Failure::of(code), Certainty::NotSent), Carried::Nothing),
        };
        if let Some(failure) = &mut report.failure {
            // An upstream may ask for any wait; what is recorded stays within what a playbook may name.
            failure.retry_after_ms = failure.retry_after_ms.map(|asked| asked.min(WAIT_MS_MAX));
        }
        let _ = mail.send(Mail::Result { attempt: id, report: Box::new(report), carried });
    });
}

/// An attempt ready to leave.
struct Outgoing {
    tool: Arc<ServedTool>,
    rules: Arc<Rules>,
    stands_for: Option<StandsFor>,
    /// The call's arguments, where its answer is looked at with them.
    arguments: Option<Value>,
    ticket: u64,
    request: Request,
}

/// The call a status read stands in for.
struct StandsFor {
    tool: Option<Arc<ServedTool>>,
    happened: amends_core::expression::Expression,
    arguments: Value,
}

fn prepare(gateway: &Gateway, live: &Live, attempt: &Attempt) -> Result<Outgoing, Code> {
    let send_by = Instant::now() + clock::until(attempt.send_by);
    match attempt.purpose {
        Purpose::Act | Purpose::Join | Purpose::Evidence | Purpose::Reverse => {
            let tool = live.tool.clone().ok_or(Code::ConnectRefused)?;
            let ticket = tool.upstream.ticket();
            let token = match live.progress {
                Some(_) => ProgressToken::Replace(ticket.to_string()),
                None => ProgressToken::Remove,
            };
            let rules = live.rules.clone();
            let key = rules.contract.key.as_ref().zip(attempt.effect_key.as_deref());
            let header = key.and_then(|(place, key)| match &place.place {
                Place::Header(name) => Some((name.clone(), key.to_owned())),
                Place::Argument(_) | Place::Meta(_) => None,
            });
            let raw: &RawValue = serde_json::from_str(&live.params).map_err(|_| Code::ShapeInvalid)?;
            let call = ToolCall::parse(Some(raw)).map_err(|_| Code::ShapeInvalid)?;
            let modern = tool.upstream.era() == Some(Era::Modern)
                && !call.meta().is_ok_and(|meta| meta.protocol_version.is_some());
            let (version, info) = (format!("\"{}\"", era::MODERN), era::own_info());
            let stamps = [
                (era::PROTOCOL_VERSION, version.as_str()),
                (era::CLIENT_CAPABILITIES, "{}"),
                (era::CLIENT_INFO, info.as_str()),
            ];
            let params = call.outgoing(&Edits {
                name: (tool.local != tool.name.as_str()).then_some(tool.local.as_str()),
                progress_token: token,
                key,
                deadline_ms: None,
                meta: if modern { &stamps } else { &[] },
                without_meta: &[],
            });
            let request = Request {
                method: "tools/call".into(),
                subject: Some(tool.local.clone()),
                params: Some(params),
                headers: header.into_iter().collect(),
                progress: live.progress.clone(),
                send_by,
                run: attempt.run.filter(|run| *run != UNSEEN_RUN),
            };
            let looked_at = attempt.purpose == Purpose::Act && !live.rules.contract.answer.is_plain();
            let arguments = if looked_at { live.arguments() } else { None };
            Ok(Outgoing { rules: live.rules.clone(), stands_for: None, arguments, ticket, request, tool })
        }
        Purpose::Baseline | Purpose::Status => {
            let listing = gateway.catalogue.now();
            let tool = listing.find(attempt.tool.as_str()).cloned().ok_or(Code::ConnectRefused)?;
            let status = live.rules.contract.status.clone().ok_or(Code::ConfigSchemaViolation)?;
            let arguments = live.arguments().unwrap_or_default();
            let args = live.status_arguments().ok_or(Code::ConfigSchemaViolation)?;
            let mut params = serde_json::json!({ "name": tool.local, "arguments": args }).to_string();
            if tool.upstream.era() == Some(Era::Modern) {
                params = era::with_own_meta(Some(&params), era::MODERN);
            }
            let ticket = tool.upstream.ticket();
            let request = Request {
                method: "tools/call".into(),
                subject: Some(tool.local.clone()),
                params: Some(params),
                headers: Vec::new(),
                progress: None,
                send_by,
                run: None,
            };
            let stands_for = Some(StandsFor { tool: live.tool.clone(), happened: status.happened, arguments });
            Ok(Outgoing { rules: tool.rules.clone(), stands_for, arguments: None, ticket, request, tool })
        }
    }
}

/// Sends and waits. After an abort it still listens for a while: a late result may settle a doubt.
async fn exchange(outgoing: Outgoing, mut aborted: oneshot::Receiver<()>) -> (Report, Carried) {
    let Outgoing { tool, rules, stands_for, arguments, ticket, request } = outgoing;
    let contract = &rules.contract;
    let send_by = tokio::time::Instant::from_std(request.send_by);
    let permit = tokio::time::timeout_at(send_by, tool.upstream.permits.acquire()).await;
    let Ok(Ok(_permit)) = permit else {
        return report(Reply::Fault(Fault::NotWritten), &tool, contract, stands_for, None);
    };
    let mut exchange: Exchange = tool.upstream.send(ticket, request);
    let reply = tokio::select! {
        reply = exchange.reply() => reply,
        _ = &mut aborted => {
            exchange.abort();
            let late = Duration::from_millis(LATE_MS);
            tokio::time::timeout(late, exchange.reply()).await.unwrap_or(Reply::Fault(Fault::Lost))
        }
    };
    report(reply, &tool, contract, stands_for, arguments)
}

fn report(
    reply: Reply,
    tool: &ServedTool,
    contract: &Contract,
    stands_for: Option<StandsFor>,
    arguments: Option<Value>,
) -> (Report, Carried) {
    let translate = &tool.upstream.config.translate;
    let now = clock::now().ms();
    match reply {
        Reply::Result(result) => {
            let text = String::from_utf8_lossy(&result);
            let mut report = classify::result(&text, contract, tool.output.as_ref(), translate).report;
            report.payload = Some(Payload { digest: digest(&result), size: result.len() as u64 });
            if let Some(stands_for) = stands_for.filter(|_| report.failure.is_none()) {
                let found = structured(&text).unwrap_or(Value::Null);
                let variables = [("result", &found), ("args", &stands_for.arguments)];
                report.happened = stands_for.happened.evaluate(&variables).ok().and_then(|value| value.as_bool());
                report.payload = Some(canonical(&found));
                let declared = stands_for.tool.as_ref().and_then(|tool| tool.output.as_ref());
                report.fits = declared.is_none_or(|schema| schema.is_valid(&found));
            }
            if let Some(arguments) = arguments.filter(|_| report.failure.is_none()) {
                let found = structured(&text).unwrap_or(Value::Null);
                report.shape = Some(Box::new(shape(contract, &found, &arguments)));
            }
            drop(text);
            (report, Carried::Result(result))
        }
        Reply::Error(error) => {
            let data = error.data.as_deref().and_then(|data| serde_json::from_str::<&RawValue>(data).ok());
            let classified = classify::rpc_error(error.code, &error.message, data, contract, translate);
            (classified.report, Carried::Nothing)
        }
        Reply::Fault(fault) => {
            let signal = match &fault {
                Fault::ConnectRefused => Signal::ConnectRefused,
                Fault::NotWritten => Signal::NotWritten,
                Fault::Lost => Signal::Lost,
                Fault::TooLarge => Signal::TooLarge,
                Fault::Unreadable { start } => Signal::Unreadable { text_start: start },
                Fault::HttpStatus { status, retry_after, content_type, body } => Signal::HttpStatus {
                    status: *status,
                    retry_after: retry_after.as_deref(),
                    content_type: content_type.as_deref(),
                    body,
                },
                Fault::SessionGone => Signal::SessionGone,
            };
            (classify::signal(signal, contract, translate, now).report, Carried::Nothing)
        }
    }
}

/// The digest of what a status read found, whatever the order of its keys, so that two reads can be compared.
fn canonical(found: &Value) -> Payload {
    let bytes = serde_json_canonicalizer::to_vec(found).unwrap_or_default();
    Payload { digest: digest(&bytes), size: bytes.len() as u64 }
}

/// Waits until the call that this one repeats has its answer in the ledger.
async fn join(
    gateway: Arc<Gateway>,
    attempt: Attempt,
    mut aborted: oneshot::Receiver<()>,
    mail: mpsc::UnboundedSender<Mail>,
) {
    let Some(holder) = &attempt.holder else {
        return;
    };
    loop {
        let told = gateway.answered.notified();
        match gateway.ledger.answer(&holder.call).await {
            Ok(Some(stored)) => {
                let report = Report {
                    recorded: Some(Recorded { outcome: stored.outcome, certainty: stored.certainty }),
                    certainty: stored.certainty,
                    ..Report::success(None)
                };
                let id: AttemptId = attempt.id.clone();
                let carried = Carried::Answer(stored);
                let _ = mail.send(Mail::Result { attempt: id, report: Box::new(report), carried });
                return;
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the answer of an earlier call cannot be read"),
        }
        tokio::select! {
            _ = &mut aborted => return,
            () = told => {}
            () = tokio::time::sleep(JOIN_POLL) => {}
        }
    }
}
