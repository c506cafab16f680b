//! Sending an attempt, and turning what came of it into a report.

use std::sync::Arc;
use std::time::{Duration, Instant};

use amends_core::attempt::{Payload, Provenance, Suppressed};
use amends_core::contract::{Contract, Place};
use amends_core::failure::bounded;
use amends_core::gates::UNSEEN_RUN;
use amends_core::limits::{ATTEMPT_MS_MIN, WAIT_MS_MAX};
use amends_core::{
    Attempt, AttemptId, Certainty, ClaimState, Code, Failure, Held, Inquiry, Purpose, Report, Rules, SessionId,
    Timestamp, ToolName, Way,
};
use amends_ledger::{Form, digest, exactly};
use amends_wire::a2a;
use amends_wire::http::classify::{self as http, HttpAnswer};
use amends_wire::mcp::classify::{self, structured};
use amends_wire::mcp::shape::shape;
use amends_wire::mcp::{Edits, Era, InputRequired, ProgressToken, ToolCall, era, tasks, with_deadline};
use amends_wire::object::Object;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::session::{Carried, Live, Mail, Session};
use super::{answer, question, sign_in, undo};
use crate::catalogue::{Listing, ServedTool};
use crate::clock::{self, Awake};
use crate::gateway::Gateway;
use crate::identity::{Account, Ready};
use crate::mint;
use crate::upstream::{self, AgentFault, Asides, Exchange, Fault, Reply, Request};

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
    live.sent |= matches!(attempt.purpose, Purpose::Act | Purpose::Join | Purpose::Reverse);
    if attempt.purpose == Purpose::Join {
        let returns = live.listener.way == Way::Return;
        tokio::spawn(join(gateway, attempt, returns, aborted, mail));
        return;
    }
    if let Some(reserved) = live.reserved.take() {
        reserved.keep(&session.id);
    }
    if let Some(key) = &attempt.effect_key {
        // A call that took over another's doubt goes on with its key.
        live.effect_key.clone_from(key);
    }
    if attempt.item == Some(0) {
        live.read_first = Some(attempt.id.clone());
    }
    let whose = (attempt.purpose == Purpose::Act).then(|| session.id.clone());
    let mut prepared = prepare(&gateway, live, &attempt);
    if let (Ok(outgoing), Some(telemetry)) = (&mut prepared, &gateway.telemetry) {
        telemetry.stamp(&attempt.id, &live.params, &mut outgoing.request);
    }
    if !live.rules.contract.effect.is_read() {
        session.listening.insert(attempt.id.clone());
    }
    tokio::spawn(async move {
        let (id, purpose) = (attempt.id.clone(), attempt.purpose);
        if let (Ok(outgoing), Some(asked)) = (&mut prepared, &attempt.said) {
            let params = outgoing.request.params.as_deref().unwrap_or("{}");
            match question::said(&gateway, asked, &attempt.id, params).await {
                Ok(Some(params)) => outgoing.request.params = Some(params),
                Ok(None) => prepared = Err(Code::EvidenceStale),
                Err(_) => prepared = Err(Code::StoreUnavailable),
            }
        }
        let (mut report, carried) = match prepared {
            Ok(outgoing) => {
                let account = sign_in::account(&gateway, &outgoing.tool);
                exchange(outgoing, account, &attempt, whose, aborted, &mail).await
            }
            Err(code) => (Report::silent(Failure::of(code), Certainty::NotSent), Carried::Nothing),
        };
        if let Some(failure) = &mut report.failure {
            // An upstream may ask for any wait; what is recorded stays within what a playbook may name.
            failure.retry_after_ms = failure.retry_after_ms.map(|asked| asked.min(WAIT_MS_MAX));
        }
        // The driver outlives its calls, unless the process ends.
        let _ = mail.send(Mail::Result { attempt: id, purpose, report: Box::new(report), carried });
    });
}

/// An attempt ready to leave.
struct Outgoing {
    tool: Arc<ServedTool>,
    rules: Arc<Rules>,
    stands_for: Option<StandsFor>,
    /// Whether what it reads is compared, whatever the order of its keys.
    canonical: bool,
    /// The tool's name, where other calls may be based on what it reads.
    based_on: Option<ToolName>,
    /// The call's arguments, where its answer is looked at with them.
    arguments: Option<Value>,
    ticket: u64,
    request: Request,
    /// When it was made ready.
    awake: Awake,
    /// Whether its agent is on a line.
    on_line: bool,
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
        Purpose::Evidence => {
            let args = attempt.item.and_then(|item| live.evidence.get(item as usize)).cloned();
            let args = args.ok_or(Code::ConfigSchemaViolation)?;
            let mut outgoing = read(gateway, attempt, &args, send_by)?;
            outgoing.canonical = true;
            Ok(outgoing)
        }
        Purpose::Reverse => {
            let reverse = live.rules.contract.reverse.as_ref().ok_or(Code::ConfigSchemaViolation)?;
            let args = undo::arguments(reverse, live).map_err(|_| Code::ConfigSchemaViolation)?;
            let mut outgoing = read(gateway, attempt, &args, send_by)?;
            let Some(place) = outgoing.rules.contract.key.clone() else { return Ok(outgoing) };
            let key = format!("{}_undo", live.effect_key);
            if let Place::Header(name) = &place.place {
                outgoing.request.headers.push((name.clone(), key.clone()));
            }
            if let Some(params) = outgoing.request.params.take() {
                let raw: &RawValue = serde_json::from_str(&params).map_err(|_| Code::ShapeInvalid)?;
                let call = ToolCall::parse(Some(raw)).map_err(|_| Code::ShapeInvalid)?;
                let edits = Edits { key: Some((&place, &key)), ..Edits::default() };
                outgoing.request.params = Some(call.outgoing(&edits));
            }
            Ok(outgoing)
        }
        Purpose::Act | Purpose::Join => {
            let tool = live.tool.clone().ok_or(Code::ConnectRefused)?;
            let ticket = tool.upstream.ticket();
            let token = match live.listener.progress {
                true => ProgressToken::Replace(ticket.to_string()),
                false => ProgressToken::Remove,
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
            let declared = sign_in::declared(gateway, live.listener.declared());
            let (version, info) = (format!("\"{}\"", era::MODERN), era::own_info());
            let stamps = [
                (era::PROTOCOL_VERSION, version.as_str()),
                (era::CLIENT_CAPABILITIES, declared.as_str()),
                (era::CLIENT_INFO, info.as_str()),
            ];
            let mut headers: Vec<(String, String)> = header.into_iter().collect();
            if rules.contract.if_match {
                headers.push(("if-match".into(), live.tag()?));
            }
            let params = call.outgoing(&Edits {
                name: (tool.local != tool.name.as_str()).then_some(tool.local.as_str()),
                progress_token: token,
                key,
                meta: if modern { &stamps } else { &[] },
                without_meta: if tool.upstream.takes_no_stamps() { &era::STAMPS } else { &[] },
            });
            // In the stateful era a tool may be there as a task alone, which whoever understands tasks of the other era gets.
            let as_task =
                tool.upstream.takes_no_stamps() && tasks::wanted(&live.params) && tasks::is_required(&tool.entry);
            let params = if as_task { tasks::asked_for(&params) } else { params };
            let request = Request {
                method: "tools/call".into(),
                subject: Some(tool.local.clone()),
                params: Some(params),
                headers,
                asides: None,
                send_by,
                run: attempt.run.filter(|run| *run != UNSEEN_RUN),
            };
            let based_on = gateway.config().evidence_tools.contains(tool.name.as_str()).then(|| tool.name.clone());
            let looked_at = attempt.purpose == Purpose::Act && !live.rules.contract.answer.is_plain();
            let arguments = if looked_at { live.arguments() } else { None };
            Ok(Outgoing {
                rules: live.rules.clone(),
                stands_for: None,
                canonical: false,
                based_on,
                arguments,
                ticket,
                request,
                awake: Awake::now(),
                on_line: live.listener.way == Way::Line,
                tool,
            })
        }
        Purpose::Baseline | Purpose::Status => {
            let status = live.rules.contract.status.clone().ok_or(Code::ConfigSchemaViolation)?;
            let arguments = live.arguments().unwrap_or_default();
            let args = live.status_arguments().ok_or(Code::ConfigSchemaViolation)?;
            let mut outgoing = read(gateway, attempt, &args, send_by)?;
            outgoing.stands_for = Some(StandsFor { tool: live.tool.clone(), happened: status.happened, arguments });
            Ok(outgoing)
        }
    }
}

/// A call of ours to another tool than the agent's: to read, or to undo.
fn read(gateway: &Gateway, attempt: &Attempt, args: &Map<String, Value>, send_by: Instant) -> Result<Outgoing, Code> {
    let listing = gateway.catalogue.now();
    let tool = listing.find(attempt.tool.as_str()).cloned().ok_or_else(|| absent(gateway, &listing))?;
    if !takes(&tool, &attempt.id, args) {
        return Err(Code::ConfigSchemaViolation);
    }
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
        asides: None,
        send_by,
        run: None,
    };
    Ok(Outgoing {
        rules: tool.rules.clone(),
        stands_for: None,
        canonical: false,
        based_on: None,
        arguments: None,
        ticket,
        request,
        awake: Awake::now(),
        on_line: false,
        tool,
    })
}

/// Whether a tool takes what a contract gives it. The key of its effect is ours to give, and comes with the sending.
fn takes(tool: &ServedTool, attempt: &AttemptId, args: &Map<String, Value>) -> bool {
    let Some(schema) = &tool.input else { return true };
    let mut args = args.clone();
    if let Some(Place::Argument(name)) = tool.rules.contract.key.as_ref().map(|key| &key.place) {
        args.entry(name).or_insert_with(|| mint::effect_key(&attempt.call).into());
    }
    schema.check(&Value::Object(args)).is_empty()
}

/// What is wrong where a contract names a tool that is not listed: nobody serves it, or somebody has yet to say what they serve.
fn absent(gateway: &Gateway, listing: &Listing) -> Code {
    let all_listed = gateway.upstreams().keys().all(|name| listing.has_listed(name));
    if all_listed { Code::DependencyMissing } else { Code::ConnectRefused }
}

/// The headers that repeat arguments, as they are sent, where the upstream's era has such headers.
fn mirrored(tool: &ServedTool, params: Option<&str>) -> Vec<(String, String)> {
    if tool.mirrors.is_empty() || tool.upstream.era() != Some(Era::Modern) {
        return Vec::new();
    }
    let arguments = params.and_then(Object::parse).and_then(|params| params.get("arguments"));
    tool.mirrors.headers(arguments.map(RawValue::get))
}

/// Sends and waits. After an abort it still listens for a while: a late result may settle a doubt.
async fn exchange(
    outgoing: Outgoing,
    account: Option<Arc<Account>>,
    attempt: &Attempt,
    whose: Option<SessionId>,
    mut aborted: oneshot::Receiver<()>,
    mail: &mpsc::UnboundedSender<Mail>,
) -> (Report, Carried) {
    let deadline = attempt.deadline;
    let asks = whose.is_some();
    let Outgoing { tool, rules, stands_for, canonical, based_on, arguments, ticket, mut request, awake, on_line } =
        outgoing;
    let takes_tasks = request.params.as_deref().is_some_and(tasks::wanted);
    let seen = Seen { stands_for, canonical, based_on, arguments, takes_tasks };
    let contract = &rules.contract;
    let send_by = tokio::time::Instant::from_std(request.send_by);
    let permit = tokio::time::timeout_at(send_by, tool.upstream.permits.acquire()).await;
    let Ok(Ok(_permit)) = permit else {
        return report(Reply::Fault(Fault::NotWritten), &tool, contract, seen);
    };
    let left_ms = deadline.since_ms(clock::now());
    if left_ms < ATTEMPT_MS_MIN.min(contract.timeout_ms / 2) || !awake.still() {
        return report(Reply::Fault(Fault::NotWritten), &tool, contract, seen);
    }
    if let Some(account) = &account {
        // Nothing has left by then; a wait that is too long must not look as if something had.
        let within = Duration::from_millis(left_ms / 2);
        match tokio::time::timeout(within, account.ready()).await {
            Ok(Ready::Shown) => {}
            Ok(Ready::SignIn(at))
                if matches!(attempt.purpose, Purpose::Act | Purpose::Baseline | Purpose::Evidence) =>
            {
                let report = Report::asking(Box::new(Inquiry::of(Vec::new(), Way::Closed)));
                let carried = Carried::SignIn(at, account.queue().to_owned());
                return (Report { certainty: Certainty::NotSent, ..report }, carried);
            }
            Ok(Ready::SignIn(_)) => {
                let reason = "somebody has to sign in for it first".to_owned();
                return report(Reply::Fault(Fault::Handshake { reason }), &tool, contract, seen);
            }
            Ok(Ready::Away(reason)) => return report(Reply::Fault(Fault::Handshake { reason }), &tool, contract, seen),
            Err(_) => return report(Reply::Fault(Fault::NotWritten), &tool, contract, seen),
        }
    }
    let shown = account.as_ref().and_then(|account| account.shown());
    request.params = request.params.map(|params| with_deadline(&params, left_ms));
    request.headers.extend(mirrored(&tool, request.params.as_deref()));
    let restraint = &tool.upstream.restraint;
    let (to, mut asides) = upstream::asides();
    // Nobody is asked for the sake of a read of ours; the upstream is told so.
    request.asides = Some(Asides { to, whose, on_line });
    let mut exchange: Exchange = tool.upstream.send(ticket, request);
    // The driver outlives its calls, unless the process ends.
    let pass_on = |aside| {
        if asks {
            drop(mail.send(Mail::Aside { attempt: attempt.id.clone(), aside }));
        }
    };
    let answered = async {
        loop {
            tokio::select! {
                biased;
                Some(aside) = asides.recv() => pass_on(aside),
                reply = exchange.reply() => {
                    while let Ok(aside) = asides.try_recv() {
                        pass_on(aside);
                    }
                    return reply;
                }
            }
        }
    };
    let reply = tokio::select! {
        reply = answered => reply,
        _ = &mut aborted => {
            exchange.abort();
            // An upstream that was given little time, since the agent has none or the others took it, is not to blame.
            if clock::until(deadline).is_zero() && left_ms >= contract.timeout_ms / 2 {
                restraint.record_timeout(clock::now(), &tool.name);
            }
            let late = Duration::from_millis(LATE_MS);
            let reply = tokio::time::timeout(late, exchange.reply()).await.unwrap_or(Reply::Fault(Fault::Lost));
            return report(reply, &tool, contract, seen);
        }
    };
    if let (Some(account), Some(shown)) = (&account, &shown)
        && reply.is_unauthorized()
    {
        account.refused(shown);
        // Nothing was done. What can be renewed is, and it is another attempt that shows it.
        if matches!(account.ready().await, Ready::Shown) {
            let failure = Failure { status: Some(401), ..Failure::of(Code::ConnectRefused) };
            return (Report::answered(failure, Certainty::NotProcessed, None), Carried::Nothing);
        }
    }
    let left_us = !matches!(reply, Reply::Fault(Fault::NotWritten));
    let asked = match &reply {
        Reply::Result(result) if asks => InputRequired::parse(&String::from_utf8_lossy(result)),
        Reply::Result(_) | Reply::Error(_) | Reply::Fault(_) => None,
    };
    if let Some(asked) = asked {
        // Whether its agent can be asked is not known here.
        let inquiry = Inquiry::of(Vec::new(), Way::Closed);
        return (Report::asking(Box::new(inquiry)), Carried::Asked(Box::new(asked)));
    }
    let (report, carried) = report(reply, &tool, contract, seen);
    if left_us {
        restraint.record(clock::now(), &tool.name, &report);
    }
    (report, carried)
}

/// What is looked for in a result beside what it says of itself.
struct Seen {
    stands_for: Option<StandsFor>,
    canonical: bool,
    based_on: Option<ToolName>,
    arguments: Option<Value>,
    takes_tasks: bool,
}

fn report(reply: Reply, tool: &ServedTool, contract: &Contract, seen: Seen) -> (Report, Carried) {
    let Seen { stands_for, canonical: compared, based_on, arguments, takes_tasks } = seen;
    let translate = &tool.upstream.config.translate;
    let now = clock::now().ms();
    match reply {
        Reply::Result(result) => {
            let text = String::from_utf8_lossy(&result);
            // The handle is the answer: whoever asked for it fetches the result.
            if takes_tasks && tasks::is_handle(&text) {
                let payload = Payload { digest: digest(&result), size: result.len() as u64 };
                return (Report::success(Some(payload)), Carried::Result(result.clone()));
            }
            let mut report = classify::result(&text, contract, tool.output.as_ref(), translate).report;
            report.payload = Some(Payload { digest: digest(&result), size: result.len() as u64 });
            if let Some(stands_for) = stands_for.filter(|_| report.failure.is_none()) {
                let found = structured(&text).unwrap_or(Value::Null);
                let variables = [("result", &found), ("args", &stands_for.arguments)];
                report.happened = match stands_for.happened.evaluate(&variables) {
                    Ok(value) => value.as_bool(),
                    Err(error) => {
                        let doing = "reading whether it happened".to_owned();
                        report.suppressed.push(Suppressed { doing, reason: bounded(&error.to_string()) });
                        None
                    }
                };
                report.payload = Some(canonical(&found));
                let declared = stands_for.tool.as_ref().and_then(|tool| tool.output.as_ref());
                report.fits = declared.is_none_or(|schema| schema.is_valid(&found));
            }
            if let Some(arguments) = arguments.filter(|_| report.failure.is_none()) {
                let found = structured(&text).unwrap_or(Value::Null);
                let mut shape = shape(contract, &found, &arguments);
                report.suppressed.append(&mut shape.unread);
                report.shape = Some(Box::new(shape));
            }
            if (compared || based_on.is_some()) && report.failure.is_none() {
                let read = canonical(&structured(&text).unwrap_or(Value::Null));
                if let Some(tool) = based_on {
                    let (hash, read_at) = (Some(read.digest.clone()), Some(Timestamp::from_ms(now)));
                    let provenance = Provenance { source: tool.to_string(), hash, read_at };
                    report.shape.get_or_insert_default().provenance.push(provenance);
                }
                if compared {
                    report.payload = Some(read);
                }
            }
            drop(text);
            (report, Carried::Result(result))
        }
        Reply::Error(error) => {
            let data = error.data.as_deref().and_then(|data| serde_json::from_str::<&RawValue>(data).ok());
            let classified = classify::rpc_error(error.code, &error.message, data, contract, translate);
            (classified.report, Carried::Nothing)
        }
        Reply::Fault(Fault::Agent(AgentFault::Ended { state, result })) => {
            (a2a::classify::ended(state, &result, contract, translate), Carried::Nothing)
        }
        Reply::Fault(Fault::Agent(AgentFault::Error(error))) => {
            let data = error.data.as_deref().and_then(|data| serde_json::from_str::<&RawValue>(data).ok());
            (a2a::classify::error(error.code, &error.message, data, contract, translate), Carried::Nothing)
        }
        Reply::Fault(Fault::Refused(answer)) => {
            let answer = HttpAnswer { status: answer.status, headers: &answer.headers, body: &answer.body };
            (http::answer(answer, contract, translate, now).report, Carried::Nothing)
        }
        Reply::Fault(fault) => (classify::signal(fault.signal(), contract, translate, now).report, Carried::Nothing),
    }
}

/// The digest of what a status read found, whatever the order of its keys, so that two reads can be compared.
fn canonical(found: &Value) -> Payload {
    let bytes = exactly(found);
    Payload { digest: digest(&bytes), size: bytes.len() as u64 }
}

/// Waits until the call that this one repeats has its answer in the ledger.
async fn join(
    gateway: Arc<Gateway>,
    attempt: Attempt,
    returns: bool,
    mut aborted: oneshot::Receiver<()>,
    mail: mpsc::UnboundedSender<Mail>,
) {
    let Some(holder) = &attempt.holder else {
        return;
    };
    loop {
        let (told, hint) = (gateway.answered.notified(), gateway.ledger.hint());
        match gateway.ledger.answer(&holder.call).await {
            // The call waits for its agent, and this is not one that could be asked in its place.
            Ok(Some(stored)) if stored.form == Form::Asked && (!returns || stored.body.is_empty()) => {}
            Ok(Some(stored)) if stored.form == Form::Asked => {
                let inquiry = Inquiry::of(Vec::new(), Way::Return);
                let report = Box::new(Report::asking(Box::new(inquiry)));
                let (attempt, carried) = (attempt.id.clone(), Carried::Answer(stored));
                // The driver outlives its calls, unless the process ends.
                let _ = mail.send(Mail::Result { attempt, purpose: Purpose::Join, report, carried });
                return;
            }
            Ok(Some(stored)) => {
                let report = Report {
                    recorded: Some(answer::ended(&stored)),
                    certainty: stored.certainty,
                    ..Report::success(None)
                };
                let id: AttemptId = attempt.id.clone();
                let carried = Carried::Answer(stored);
                // The driver outlives its calls, unless the process ends.
                let _ =
                    mail.send(Mail::Result { attempt: id, purpose: Purpose::Join, report: Box::new(report), carried });
                return;
            }
            Ok(None) if matches!(holder.state, ClaimState::Awaiting | ClaimState::InFlight) => {
                if let Some(report) = awaited(&gateway, holder).await {
                    let (attempt, report) = (attempt.id.clone(), Box::new(report));
                    // The driver outlives its calls, unless the process ends.
                    let _ =
                        mail.send(Mail::Result { attempt, purpose: Purpose::Join, report, carried: Carried::Nothing });
                    return;
                }
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "the answer of an earlier call cannot be read"),
        }
        tokio::select! {
            _ = &mut aborted => return,
            () = told => {}
            () = hint => {}
            () = tokio::time::sleep(JOIN_POLL) => {}
        }
    }
}

/// What became of a call that waits for a person, or came to, and has no answer; nothing while it waits.
async fn awaited(gateway: &Gateway, holder: &Held) -> Option<Report> {
    match gateway.ledger.held(&holder.name, clock::now()).await {
        Ok(Some(held)) if held.call == holder.call => {
            let granted = (held.state == ClaimState::Granted).then_some(held.effect_key)?;
            Some(Report { granted: Some(granted), certainty: Certainty::NotSent, ..Report::success(None) })
        }
        // It was stopped, or another call has spent the yes to it.
        Ok(_) if holder.state == ClaimState::Awaiting => {
            Some(Report { certainty: Certainty::NotSent, ..Report::success(None) })
        }
        Ok(_) => None,
        Err(error) => {
            tracing::warn!(%error, "what became of an earlier call cannot be read");
            None
        }
    }
}
