//! A story as it is told: the events in short form, the claims, the effects, and the answers in full.

use std::fmt::Write as _;
use std::sync::Arc;

use amends_core::attempt::Payload;
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::dispatcher::redecide::{call_under, redecide};
use amends_core::gates::OpenBreaker;
use amends_core::id::MachineName;
use amends_core::machine::{MachineSpec, Machines};
use amends_core::{
    Answer, AttemptId, ClaimChange, Deadline, Dispatcher, Effect, Event, Fact, Gates, Input, Inquiry, PersonAnswer,
    Report, ReversalChange, Rules, Step, Timestamp, UpstreamName,
};
use serde_json::Value;

use super::story::{BEGIN, InputSpec, Story};
use super::{GoldenError, says};
use crate::scenario::{self, Cast, Happened, Scenario};

/// What the machine of a story is called.
const MACHINE: &str = "machine";

/// Tells a story under those rules: feeds its inputs to a dispatcher and writes down what follows.
pub(super) fn tell(story: &Story, rules: &Arc<Rules>) -> Result<String, GoldenError> {
    if let Some(machine) = &story.machine {
        return tell_walk(story, machine, rules);
    }
    let mut dispatcher = Dispatcher::open("session".into(), 7, "local".into(), "stdio");
    let mut gates = Gates { runs: [(UpstreamName::from("shop"), 1)].into(), ..Gates::default() };
    let mut now = BEGIN;
    let mut history: Vec<Event> = Vec::new();
    let mut out = String::new();
    for spec in &story.inputs {
        now = match (spec.at, spec.after, spec.tick) {
            (Some(at), ..) => BEGIN + at,
            (None, Some(after), _) => now + after,
            // Under other rules than it was told with, nothing may be due.
            (None, None, true) => dispatcher.deadline().map_or(now, |deadline| deadline.at),
            (None, None, false) => now + 100,
        };
        if let Some(run) = spec.run {
            gates.runs.insert("shop".into(), run);
        }
        if let Some(spent) = spec.budget_spent {
            gates.spent = spent.then(|| UpstreamName::from("shop")).into_iter().collect();
        }
        if let Some(until) = spec.breaker_until {
            let open = OpenBreaker { upstream: "shop".into(), tool: None, until: BEGIN + until };
            gates.breakers = (until > 0).then_some(open).into_iter().collect();
        }
        if let Some(sampled) = &spec.gates {
            gates = sampled.clone();
        } else {
            gates.refusal = spec.call.as_ref().and_then(|_| spec.to_refusal(story.tool.name.as_str()));
        }
        if spec.gates.is_none() {
            gates.approval = spec.approval.clone().map(Box::new);
            gates.patience = spec.patience.clone().map(Box::new);
        }
        let step = dispatcher.handle(now, &gates, input(spec, story, rules, now)?);
        history.extend(step.events.iter().cloned());
        write_step(&mut out, now, &step);
        write_due(&mut out, dispatcher.deadline());
    }
    let found = |_: &_| Some(Arc::clone(rules));
    let broken = |what: &str| GoldenError::Senseless { what: what.to_owned() };
    if Dispatcher::restore(&history, found).as_ref() != Ok(&dispatcher) {
        return Err(broken("its trace does not fold to the live state, which is a bug of ours"));
    }
    if redecide(&history, found) != Ok(None) {
        return Err(broken("its trace is decided otherwise the second time, which is a bug of ours"));
    }
    Ok(out)
}

/// Tells a walk: the moves are wished for, the tools answer as it is written, and every step is written down.
fn tell_walk(story: &Story, machine: &MachineSpec, rules: &Arc<Rules>) -> Result<String, GoldenError> {
    let senseless = |what: String| GoldenError::Senseless { what };
    let name = MachineName::new(MACHINE);
    let machines = Machines::read(&[(name, machine.clone())].into()).map_err(|found| {
        let words: Vec<String> = found.iter().map(ToString::to_string).collect();
        senseless(words.join("; "))
    })?;
    let (told, steps) = (story.story.clone(), story.steps.clone());
    let scenario = Scenario { story: told, config: "-".into(), machine: MACHINE.into(), steps, ..Scenario::default() };
    let scenario = scenario.checked().map_err(|error| senseless(error.to_string()))?;
    let rules = story.rules_of(rules)?;
    let cast = Cast { machines: &machines, rules: &rules, recorded: &|_| None };
    let happened = scenario::retell(&scenario, &cast).map_err(|error| senseless(error.to_string()))?;
    let mut out = String::new();
    for Happened { at, step, due } in happened {
        write_step(&mut out, at, &step);
        write_due(&mut out, due);
    }
    Ok(out)
}

fn write_due(out: &mut String, due: Option<Deadline>) {
    match due {
        Some(Deadline { at, reason, .. }) => writeln!(out, "         ~ {}: {reason}", at.since_ms(BEGIN)),
        None => writeln!(out, "         ~ nothing is due"),
    }
    .expect("a string takes everything");
}

fn input(spec: &InputSpec, story: &Story, rules: &Arc<Rules>, now: Timestamp) -> Result<Input, GoldenError> {
    let stop = |call: &String, reason| Input::Cancel { call: call.as_str().into(), reason };
    Ok(match spec {
        InputSpec { received: Some(received), .. } => {
            Input::Call(Box::new(call_under(received, now, &*story.rules()?, rules.clone())))
        }
        InputSpec { call: Some(id), .. } => Input::Call(Box::new(spec.to_call(id, &story.tool, rules, now))),
        InputSpec { result: Some(attempt), report: Some(report), .. } => {
            Input::Result { attempt: attempt_id(attempt)?, report: report.clone() }
        }
        InputSpec { result: Some(attempt), says: Some(says), .. } => {
            let report = says::report(says, &rules.contract)?;
            Input::Result { attempt: attempt_id(attempt)?, report: Box::new(report) }
        }
        InputSpec { answer: Some(interaction), choice: Some(choice), .. } => {
            let answer = PersonAnswer {
                choice: choice.clone(),
                by: spec.by.clone().unwrap_or("ada".into()),
                note: None,
                at: now,
                content: None,
            };
            Input::Answer { interaction: interaction.as_str().into(), answer: Box::new(answer) }
        }
        InputSpec { asks: Some(attempt), says: Some(says), .. } => {
            Input::Inquiry { attempt: attempt_id(attempt)?, inquiry: Box::new(says::inquiry(says)?) }
        }
        InputSpec { gives: Some(call), inquiry: Some(inquiry), .. } => Input::Inputs {
            call: call.as_str().into(),
            inquiry: *inquiry,
            inputs: Payload { digest: "inputs".into(), size: 10 },
        },
        InputSpec { withdraws: Some(call), inquiry: Some(inquiry), .. } => {
            Input::Withdrawal { call: call.as_str().into(), inquiry: *inquiry }
        }
        InputSpec { cancel: Some(call), .. } => stop(call, CancelReason::Asked),
        InputSpec { end_turn: Some(call), .. } => stop(call, CancelReason::TurnEnded),
        InputSpec { end_session: Some(call), .. } => stop(call, CancelReason::SessionEnded),
        InputSpec { disconnect: Some(call), .. } => stop(call, CancelReason::Disconnected),
        InputSpec { delivery: Some(call), .. } => Input::Delivery { call: call.as_str().into() },
        InputSpec { tick: true, .. } => Input::Tick,
        InputSpec { resume: true, .. } => Input::Resume,
        _ => return Err(GoldenError::Senseless { what: "an input does not say what arrives".into() }),
    })
}

fn attempt_id(text: &str) -> Result<AttemptId, GoldenError> {
    let parts = text.split_once('/').and_then(|(call, n)| Some((call, n.parse().ok()?)));
    let (call, n) =
        parts.ok_or_else(|| GoldenError::Senseless { what: format!("`{text}` is no attempt, such as `c1/2`") })?;
    Ok(AttemptId { call: call.into(), n })
}

fn write_step(out: &mut String, now: Timestamp, step: &Step) {
    let mut lines = Vec::new();
    for event in &step.events {
        if !matches!(event.fact, Fact::SessionOpened { .. }) {
            lines.push(short(&event.fact));
        }
    }
    lines.extend(step.claims.iter().map(claim));
    lines.extend(step.reversals.iter().map(token));
    for effect in &step.effects {
        lines.extend(effect_lines(effect));
    }
    for (n, line) in lines.iter().enumerate() {
        let time = if n == 0 { now.since_ms(BEGIN).to_string() } else { String::new() };
        writeln!(out, "{time:<8} {line}").expect("a string takes everything");
    }
    if lines.is_empty() {
        writeln!(out, "{:<8} nothing", now.since_ms(BEGIN)).expect("a string takes everything");
    }
}

fn short(fact: &Fact) -> String {
    let name = fact.name();
    match fact {
        Fact::CallReceived { received, .. } => match &received.repeat_of {
            Some(held) => format!("{name} {} repeats {} {:?}", received.call, held.call, held.state),
            None => format!("{name} {}", received.call),
        },
        Fact::CallRefused { call, refusal } => format!("{name} {call} {}", refusal.kind.as_str()),
        Fact::AttemptStarted { attempt, purpose, tool, deadline, .. } => {
            let due = deadline.since_ms(BEGIN);
            format!("{name} {attempt} {} {tool}, answer due {due}", purpose.as_str())
        }
        Fact::AttemptEnded { attempt, report, .. } | Fact::LateResult { attempt, report } => {
            format!("{name} {attempt} {}", report_words(report))
        }
        Fact::AttemptTimedOut { attempt, certainty } | Fact::AttemptOrphaned { attempt, certainty } => {
            format!("{name} {attempt} {}", certainty.as_str())
        }
        Fact::FailureJudged { attempt, verdict, compensation, retry, held_back, .. } => {
            let retry = retry.map(|n| format!(", retry {n}")).unwrap_or_default();
            let held = held_back.map(|by| format!(", held back by the {}", by.as_str())).unwrap_or_default();
            format!("{name} {attempt} {} -> {compensation}{retry}{held}", verdict.as_str())
        }
        Fact::WaitBegan { call, until, next } => {
            format!("{name} {call} until {} for {}", until.since_ms(BEGIN), next.as_str())
        }
        Fact::DoubtSettled { call, certainty, by } => format!("{name} {call} {} by {by}", certainty.as_str()),
        Fact::CallEnded { call, outcome, certainty, replayed, granted, .. } => {
            let replayed = if *replayed { ", replayed" } else { "" };
            let granted = if *granted { ", granted" } else { "" };
            format!("{name} {call} {}, {}{replayed}{granted}", outcome.as_str(), certainty.as_str())
        }
        Fact::CallApproved { call, yes, .. } => format!("{name} {call} by {}", yes.as_str()),
        Fact::EvidenceCompared { call, changed } => {
            let changed: Vec<String> =
                changed.iter().map(|c| format!(" {} was {} is {}", c.reference, c.was, c.is)).collect();
            format!("{name} {call}{}", changed.concat())
        }
        Fact::InteractionOpened { interaction } => {
            let due = interaction.due.since_ms(BEGIN);
            format!("{name} {} on {}, due {due}: {}", interaction.id, interaction.queue, interaction.question)
        }
        Fact::InteractionAnswered { interaction, answer, .. } => format!("{name} {interaction} {}", answer.choice),
        Fact::InteractionLapsed { interaction, default } => format!("{name} {interaction} {default}"),
        Fact::InteractionWithdrawn { interaction } => format!("{name} {interaction}"),
        Fact::InquiryMade { attempt, inquiry, .. } => format!("{name} {attempt} {}", inquiry_words(inquiry)),
        Fact::InquiryOpened { attempt, inquiry, held, due, way } => {
            let held = if *held { ", held" } else { "" };
            format!("{name} {attempt} {inquiry} by {}{held}, due {}", way.as_str(), due.since_ms(BEGIN))
        }
        Fact::InputsGiven { call, inquiry, .. } | Fact::InquiryWithdrawn { call, inquiry } => {
            format!("{name} {call} {inquiry}")
        }
        Fact::WorkNamed { attempt, name: work } => format!("{name} {attempt} {work}"),
        Fact::InquiryClosed { call, inquiry, why } => format!("{name} {call} {inquiry} {}", why.as_str()),
        Fact::DoubtResolved { call, certainty, by: None, .. } => format!("{name} {call} {}", certainty.as_str()),
        Fact::DoubtResolved { call, certainty, by: Some(by), .. } => {
            format!("{name} {call} {} by {by}", certainty.as_str())
        }
        Fact::ReversalMinted { call, token } | Fact::ReversalVoided { call, token } => format!("{name} {call} {token}"),
        Fact::ReversalArmed { call, token, until } => {
            format!("{name} {call} {token} until {}", until.since_ms(BEGIN))
        }
        Fact::ReversalRefused { call, reason } => format!("{name} {call}: {reason}"),
        Fact::ReversalRedeemed { call, token, of } => format!("{name} {call} {token} of {of}"),
        Fact::CancelRequested { call, reason } => format!("{name} {call} {reason:?}"),
        Fact::InterimAnswered { call } | Fact::AnswerDelivered { call } => format!("{name} {call}"),
        Fact::SchemaDrifted { drift } => format!("{name} {}", drift.tool),
        Fact::SchemaApproved { drift, by } => format!("{name} {} by {by}", drift.tool),
        Fact::WalkBegan { beginning } => format!("{name} {}", beginning.machine),
        Fact::WalkMigrated { hash, .. } => format!("{name} {hash}"),
        Fact::MoveReceived { taking, .. } => format!("{name} {} {}", taking.id, taking.action),
        Fact::MoveRefused { of, refusal } => format!("{name} {of} {}", refusal.kind.as_str()),
        Fact::MoveJoined { of, first } => format!("{name} {of} {first}"),
        Fact::MoveWeighed { of, weighed } => format!("{name} {of} {weighed:?}"),
        Fact::MoveWaits { of, until, attempt } => {
            format!("{name} {of} until {} for try {attempt}", until.since_ms(BEGIN))
        }
        Fact::MoveMade { of, action, from, to, .. } => {
            let to: Vec<&str> = to.iter().map(|state| state.as_str()).collect();
            format!("{name} {of} {action} from {from} to {}", to.join(", then "))
        }
        Fact::MoveEnded { of, outcome, certainty, .. } => {
            format!("{name} {of} {}, {}", outcome.as_str(), certainty.as_str())
        }
        Fact::WalkReset { of, .. } | Fact::WalkAborted { of } => format!("{name} {of}"),
        Fact::WalkUnwound { of, undone, failed, left, more, .. } => {
            format!("{name} {of}: {undone} undone, {} not", failed.len() + left.len() + *more as usize)
        }
        Fact::Ignored { why } => format!("{name}: {why}"),
        Fact::SuppressedError { doing, reason } => format!("{name}: {doing}: {reason}"),
        Fact::SessionRetired { reason, .. } => format!("{name} {}", reason.as_str()),
        Fact::SessionOpened { .. } | Fact::Ticked { .. } | Fact::Resumed { .. } => name.to_owned(),
    }
}

fn report_words(report: &Report) -> String {
    let certainty = report.certainty.as_str();
    if let Some(inquiry) = &report.inquiry {
        return format!("{}, {certainty}", inquiry_words(inquiry));
    }
    match (&report.failure, report.happened) {
        (Some(failure), _) => format!("{}, {certainty}", failure.code.as_str()),
        (None, Some(happened)) => format!("happened: {happened}"),
        (None, None) => format!("without a failure, {certainty}"),
    }
}

fn inquiry_words(inquiry: &Inquiry) -> String {
    let asks: Vec<&str> = inquiry.asks.iter().map(|ask| ask.kind.as_str()).collect();
    format!("asks [{}] by {}", asks.join(", "), inquiry.way.as_str())
}

fn token(change: &ReversalChange) -> String {
    match change {
        ReversalChange::Mint { token, .. } => format!("# mint {token}"),
        ReversalChange::Arm { token, until } => format!("# arm {token} until {}", until.since_ms(BEGIN)),
        ReversalChange::Void { token } => format!("# void {token}"),
        ReversalChange::Redeem { token, by, over: None } => format!("# redeem {token} by {by}"),
        ReversalChange::Redeem { token, by, over: Some(over) } => format!("# redeem {token} by {by} after {over}"),
        ReversalChange::Rearm { token, by } => format!("# arm {token} again after {by}"),
        ReversalChange::Spend { token, by } => format!("# spend {token} by {by}"),
    }
}

fn claim(change: &ClaimChange) -> String {
    match change {
        ClaimChange::Take { claim, over, .. } => match over {
            Some(over) => format!("# take {} over from {over}", claim.name),
            None => format!("# take {}", claim.name),
        },
        ClaimChange::Settle { name, state, until, .. } => match until {
            Some(until) => format!("# settle {name} {state:?} until {}", until.since_ms(BEGIN)),
            None => format!("# settle {name} {state:?} for good"),
        },
        ClaimChange::Grant { name, until, .. } => match until {
            Some(until) => format!("# grant {name} until {}", until.since_ms(BEGIN)),
            None => format!("# grant {name} for good"),
        },
        ClaimChange::Absent { name } => format!("# unless {name} is granted"),
        ClaimChange::Release { name, .. } => format!("# release {name}"),
    }
}

fn effect_lines(effect: &Effect) -> Vec<String> {
    match effect {
        Effect::Send(attempt) => {
            let key = attempt.effect_key.as_ref().map(|key| format!(" with {key}")).unwrap_or_default();
            vec![format!("> send {} {}{key}", attempt.id, attempt.purpose.as_str())]
        }
        Effect::Ask(interaction) => vec![format!("> ask {}", interaction.id)],
        Effect::Withdraw(interaction) => vec![format!("> withdraw {interaction}")],
        Effect::Inquire(asking) => vec![format!("> inquire {} {}", asking.attempt, asking.inquiry)],
        Effect::Tell(telling) => {
            let what = telling.unanswered.map_or("given", |why| why.as_str());
            vec![format!("> tell {} {} {what}", telling.attempt, telling.inquiry)]
        }
        Effect::Retract { call, inquiry } => vec![format!("> retract {call} {inquiry}")],
        Effect::Begin(wish) => vec![format!("> begin {} {} {}", wish.leg.of, wish.leg.part.as_str(), wish.leg.name)],
        Effect::Weigh { of, what } => vec![format!("> weigh {of} {what:?}")],
        Effect::Join { of, first } => vec![format!("> join {of} {first}")],
        Effect::Unwind { of, .. } => vec![format!("> unwind {of}")],
        Effect::Abort(attempt) => vec![format!("> abort {attempt}")],
        Effect::Reply(reply) => {
            let interim = if reply.last { "" } else { ", interim" };
            let (what, envelope) = match &reply.answer {
                Answer::Forward { attempt, envelope } => (format!("forward {attempt}"), Some(envelope)),
                Answer::Recorded { attempt } => (format!("recorded by {attempt}"), None),
                Answer::Asked { attempt } => (format!("asked by {attempt}"), None),
                Answer::Envelope(envelope) => ("envelope".to_owned(), Some(envelope)),
            };
            let mut lines = vec![format!("> reply {} {what}{interim}", reply.call)];
            if let Some(envelope) = envelope {
                if let Some(attempt) = envelope.payload_of() {
                    lines.push(format!("  carries what {attempt} gave"));
                }
                let json: Value = serde_json::from_str(envelope.to_json(None).get()).expect("an envelope is JSON");
                let pretty = serde_json::to_string_pretty(&json).expect("JSON can be written");
                lines.extend(pretty.lines().map(|line| format!("  {line}")));
            }
            lines
        }
    }
}
