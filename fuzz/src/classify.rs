//! What was heard, into reports: bounded words, no proof that nobody gave, and never a panic.

use amends_core::expression::Expression;
use amends_core::failure::bounded;
use amends_core::{Certainty, Code, Contract, EffectKind, Report, Verdict};
use amends_wire::Schema;
use amends_wire::mcp::classify::{Classified, Signal, TranslateRule, result, rpc_error, signal};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// What was heard and under which rules, in the shape of `fixtures/wire/mcp/classify`.
#[derive(Deserialize)]
struct Heard {
    given: Given,
    #[serde(default)]
    rejects_before_effect: Vec<u16>,
    #[serde(default)]
    output_schema: Option<Value>,
    #[serde(default)]
    translate: Vec<Rule>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Given {
    Result(Box<RawValue>),
    Error { code: i64, message: String, data: Option<Box<RawValue>> },
    ConnectRefused,
    Unstartable(String),
    NotWritten,
    TimedOut,
    Lost,
    TooLarge,
    Unreadable(String),
    Http { status: u16, retry_after: Option<String>, body: String },
    SessionGone,
    SessionPerhapsGone(String),
}

#[derive(Deserialize)]
struct Rule {
    when: Expression,
    failure: Code,
}

const EFFECTS: [EffectKind; 4] = [EffectKind::Read, EffectKind::Idempotent, EffectKind::Keyed, EffectKind::Write];
const NOW_MS: u64 = 1_794_744_000_000;

/// Reads the bytes as something heard, or as the text of an answer.
pub fn target(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let envelope = text.contains("charter_version") || text.contains("\\u");
    for effect in EFFECTS {
        let contract = contract(effect, &[]);
        for heard in [
            result(&text, &contract, None, &[]),
            rpc_error(-32000, &text, None, &contract, &[]),
            signal(Signal::Unreadable { text_start: &text }, &contract, &[], NOW_MS),
            signal(http(409, Some(&text), &text), &contract, &[], NOW_MS),
        ] {
            check(&heard, &contract, envelope);
        }
    }
    let Ok(heard) = serde_json::from_str::<Heard>(&text) else {
        return;
    };
    let schema = heard.output_schema.clone().and_then(|schema| Schema::from_value(schema).ok());
    let rules: Vec<_> =
        heard.translate.iter().map(|rule| TranslateRule { when: rule.when.clone(), code: rule.failure }).collect();
    for effect in EFFECTS {
        let contract = contract(effect, &heard.rejects_before_effect);
        for rules in [&rules[..], &[]] {
            check(&heard.classified(&contract, schema.as_ref(), rules), &contract, envelope || !rules.is_empty());
        }
    }
}

impl Heard {
    fn classified(&self, contract: &Contract, schema: Option<&Schema>, rules: &[TranslateRule]) -> Classified {
        let of = |given| signal(given, contract, rules, NOW_MS);
        match &self.given {
            Given::Result(raw) => result(raw.get(), contract, schema, rules),
            Given::Error { code, message, data } => rpc_error(*code, message, data.as_deref(), contract, rules),
            Given::ConnectRefused => of(Signal::ConnectRefused),
            Given::Unstartable(reason) => of(Signal::Unstartable { reason }),
            Given::NotWritten => of(Signal::NotWritten),
            Given::TimedOut => of(Signal::TimedOut),
            Given::Lost => of(Signal::Lost),
            Given::TooLarge => of(Signal::TooLarge),
            Given::Unreadable(text_start) => of(Signal::Unreadable { text_start }),
            Given::Http { status, retry_after, body } => of(http(*status, retry_after.as_deref(), body)),
            Given::SessionGone => of(Signal::SessionGone),
            Given::SessionPerhapsGone(body) => of(Signal::SessionPerhapsGone { body }),
        }
    }
}

fn http<'a>(status: u16, retry_after: Option<&'a str>, body: &'a str) -> Signal<'a> {
    Signal::HttpStatus { status, retry_after, content_type: Some("application/json"), body }
}

fn contract(effect: EffectKind, rejects: &[u16]) -> Contract {
    let mut contract = Contract::undeclared(1000, 1000, 1000);
    contract.effect = effect;
    contract.rejects_before_effect = rejects.to_vec();
    contract
}

/// `vouched` says that a rule of the operator's, or a gateway of ours behind the upstream, may have had its say.
fn check(heard: &Classified, contract: &Contract, vouched: bool) {
    let report = &heard.report;
    let Some(failure) = &report.failure else {
        assert!(report.certainty == Certainty::Processed && report.answered, "{report:?}");
        return;
    };
    if let Some(words) = &failure.upstream {
        for word in [&words.code, &words.text, &words.field].into_iter().flatten() {
            assert_eq!(*word, bounded(word), "an upstream's words are bounded and visible");
        }
    }
    // Who answered was sent something.
    assert!(!(report.answered && report.certainty == Certainty::NotSent), "{report:?}");
    if !vouched && report.certainty == Certainty::NotProcessed {
        proven(report, failure.code, failure.status, contract);
    }
    if contract.effect == EffectKind::Write && report.certainty == Certainty::InDoubt && failure.code.retryable() {
        assert_eq!(Verdict::judge(failure.code, report.certainty, contract.effect), Verdict::InDoubt, "{report:?}");
    }
}

/// Nothing was done: the code itself says so, the operator takes the status at its word, or the upstream did not know our
/// session.
fn proven(report: &Report, code: Code, status: Option<u16>, contract: &Contract) {
    let by_code = code.implies().is_some_and(Certainty::nothing_happened);
    let by_operator = status.is_some_and(|status| contract.rejects_before_effect.contains(&status));
    let by_session = report.failure == Some(amends_core::Failure::of(Code::ConnectionLost));
    assert!(by_code || by_operator || by_session, "{report:?}");
}
