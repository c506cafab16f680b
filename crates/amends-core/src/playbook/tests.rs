use super::*;
use crate::compensation::Ladder;
use crate::contract::EffectKind;

fn contract(effect: EffectKind) -> Contract {
    Contract { effect, declared: true, ..Contract::undeclared(5000, 50_000, 600_000) }
}

fn parse(verdict: &str, compensation: &str, effect: EffectKind) -> Result<Playbook, PlaybookError> {
    let rule = RuleSpec { compensation: compensation.into(), ..RuleSpec::default() };
    Playbook::parse(&BTreeMap::from([(verdict.to_owned(), rule)]), &contract(effect))
}

fn policy() -> RetryPolicy {
    RetryPolicy {
        retryable: true,
        max_attempts: None,
        backoff: None,
        initial_ms: None,
        max_ms: None,
        factor: None,
        jitter_percent: None,
        codes: Vec::new(),
    }
}

fn sends(max_attempts: u32) -> RetryPolicy {
    RetryPolicy { max_attempts: Some(max_attempts), ..policy() }
}

fn layer(whole: Option<RetryPolicy>, class: &[(&str, RetryPolicy)], verdict: &[(&str, RetryPolicy)]) -> RetryLayer {
    let named = |all: &[(&str, RetryPolicy)]| all.iter().map(|(n, p)| ((*n).to_owned(), p.clone())).collect();
    RetryLayer { whole, class: named(class), verdict: named(verdict) }
}

fn layered(shared: &RetryLayer, own: &RetryLayer, effect: EffectKind) -> Result<Playbook, RefusedSection> {
    let layers = Layers { tool: "pay", shared, own, rules: &PlaybookSpec::new() };
    Playbook::layered(layers, &contract(effect))
}

fn ladder(playbook: &Playbook, code: Code) -> Option<(Vec<u64>, Origin)> {
    let rule = playbook.rule(code.verdict(), code);
    match &rule.compensation {
        Compensation::RetryWithBackoff(ladder) | Compensation::Wait(ladder) => {
            Some((ladder.backoff_ms.clone(), rule.origin))
        }
        _ => None,
    }
}

#[test]
fn forbidden_pairs_are_refused_with_the_reason() {
    for verdict in ["idempotency_conflict", "policy_denied", "in_doubt", "schema_mismatch"] {
        let refused = parse(verdict, "retry_with_backoff", EffectKind::Write);
        assert!(matches!(refused, Err(PlaybookError::Forbidden { .. })), "{verdict}");
    }
    assert!(parse("schema_mismatch", "retry_with_backoff", EffectKind::Read).is_ok());
    assert!(parse("transient_timeout", "issue_reversal", EffectKind::Write).is_err());
}

#[test]
fn a_typo_is_answered_with_the_nearest_name() {
    let unknown = parse("transient_timout", "surface", EffectKind::Read).unwrap_err();
    assert_eq!(unknown.to_string(), "`transient_timout` is not a verdict; did you mean `transient_timeout`?");
    let own = layer(None, &[("ToolTransiant", policy())], &[]);
    let unknown = layered(&RetryLayer::default(), &own, EffectKind::Read).unwrap_err().to_string();
    assert_eq!(
        unknown,
        "`tools.pay.retry.class.ToolTransiant`: `ToolTransiant` is not a class of failures; did you mean `ToolTransient`?"
    );
}

#[test]
fn a_ladder_without_an_end_is_refused() {
    let rule =
        RuleSpec { compensation: "retry_with_backoff".into(), backoff_ms: Some(vec![1; 17]), ..RuleSpec::default() };
    let spec = BTreeMap::from([("transient_timeout".to_owned(), rule)]);
    assert!(matches!(Playbook::parse(&spec, &contract(EffectKind::Read)), Err(PlaybookError::Endless { .. })));
}

#[test]
fn the_table_is_the_one_we_promise() {
    let playbook = Playbook::default();
    let steps = |code| ladder(&playbook, code).map(|(steps, _)| steps);
    assert_eq!(steps(Code::NetworkTimeout), Some(vec![200, 600, 1800]));
    assert_eq!(steps(Code::Provider5xx), Some(vec![500, 2000]));
    assert_eq!(steps(Code::ConnectRefused), Some(vec![1000, 2000, 4000]));
    assert_eq!(steps(Code::RateLimited), Some(vec![5_000, 10_000, 20_000, 40_000, 80_000]));
    assert_eq!(steps(Code::StoreUnavailable), Some(vec![2000, 4000, 6000]));
    for code in Code::ALL.into_iter().filter(|code| code.class() == Class::ToolTransient) {
        assert_eq!(playbook.rule(code.verdict(), code).compensation, Compensation::Surface, "{code:?}");
    }
}

#[test]
fn the_nearest_policy_wins() {
    let shared =
        layer(None, &[("ProviderTransient", sends(2))], &[("transient_timeout", sends(3)), ("rate_limited", sends(3))]);
    let alone = layered(&shared, &RetryLayer::default(), EffectKind::Read).unwrap();
    assert_eq!(ladder(&alone, Code::NetworkTimeout), Some((vec![200, 600], Origin::Verdict)));
    assert_eq!(ladder(&alone, Code::Provider5xx), Some((vec![500], Origin::Class)));
    assert_eq!(ladder(&alone, Code::ExecutionTimeout), None, "no policy of the whole file turns a troubled tool on");

    let own = layer(Some(sends(4)), &[("ToolTransient", sends(5))], &[("server_error_5xx", sends(6))]);
    let mut rules = PlaybookSpec::new();
    let none = RetryLayer::default();
    let both = layered(&shared, &own, EffectKind::Read).unwrap();
    assert_eq!(ladder(&both, Code::NetworkTimeout), Some((vec![200, 600, 1800], Origin::ToolRetry)));
    assert_eq!(ladder(&both, Code::ExecutionTimeout), Some((vec![200, 600, 1800, 1800], Origin::ToolClass)));
    assert_eq!(ladder(&both, Code::Provider5xx), Some((vec![500, 2000, 2000, 2000, 2000], Origin::ToolVerdict)));

    rules.insert("transient_timeout".into(), RuleSpec { compensation: "fail_fast".into(), ..RuleSpec::default() });
    let layers = Layers { tool: "pay", shared: &none, own: &own, rules: &rules };
    let nearest = Playbook::layered(layers, &contract(EffectKind::Read)).unwrap();
    for code in [Code::NetworkTimeout, Code::ExecutionTimeout] {
        assert_eq!(nearest.rule(code.verdict(), code).compensation, Compensation::FailFast);
    }
}

#[test]
fn codes_narrow_a_policy_and_doubt_is_nobodys() {
    let only = RetryPolicy { codes: vec!["ConnectionLost".into()], ..sends(2) };
    let shared = layer(None, &[("ProviderTransient", only.clone())], &[]);
    let playbook = layered(&shared, &RetryLayer::default(), EffectKind::Write).unwrap();
    assert_eq!(ladder(&playbook, Code::ConnectionLost), Some((vec![200], Origin::Class)));
    assert_eq!(ladder(&playbook, Code::NetworkTimeout), Some((vec![200, 600, 1800], Origin::Default)));
    assert_eq!(playbook.rule(Verdict::InDoubt, Code::ConnectionLost).compensation, Compensation::Reconcile);
    let elsewhere = layer(None, &[("ToolTransient", only)], &[]);
    assert!(layered(&elsewhere, &RetryLayer::default(), EffectKind::Write).is_err());
}

#[test]
fn backoffs_grow_as_they_say_and_no_further_than_their_longest() {
    let steps = |backoff, factor| {
        let policy =
            RetryPolicy { backoff: Some(backoff), initial_ms: Some(100), max_ms: Some(350), factor, ..sends(5) };
        ladder(
            &layered(&RetryLayer::default(), &layer(Some(policy), &[], &[]), EffectKind::Read).unwrap(),
            Code::Provider5xx,
        )
        .unwrap()
        .0
    };
    assert_eq!(steps(Backoff::Fixed, None), [100, 100, 100, 100]);
    assert_eq!(steps(Backoff::Linear, None), [100, 200, 300, 350]);
    assert_eq!(steps(Backoff::Exponential, None), [100, 200, 350, 350]);
    assert_eq!(steps(Backoff::Exponential, Some(1.5)), [100, 150, 225, 337]);
}

#[test]
fn what_is_not_retryable_is_surfaced_and_what_was_not_sent_again_stays_as_it_is() {
    let never = RetryPolicy { retryable: false, ..policy() };
    let playbook =
        layered(&RetryLayer::default(), &layer(Some(never), &[], &[("in_doubt", policy())]), EffectKind::Read);
    assert_eq!(playbook.unwrap_err().section, "tools.pay.retry.verdict.in_doubt");
    let never = RetryPolicy { retryable: false, ..policy() };
    let playbook = layered(&RetryLayer::default(), &layer(Some(never), &[], &[]), EffectKind::Read).unwrap();
    let rule = playbook.rule(Verdict::TransientTimeout, Code::NetworkTimeout);
    assert_eq!((&rule.compensation, rule.origin), (&Compensation::Surface, Origin::ToolRetry));
    let rule = playbook.rule(Verdict::IdempotencyConflict, Code::KeyInFlight);
    assert_eq!((&rule.compensation, rule.origin), (&Compensation::Reconcile, Origin::Default));
}

#[test]
fn policies_that_break_a_promise_or_never_end_are_refused() {
    let write = |own: RetryLayer| layered(&RetryLayer::default(), &own, EffectKind::Write).unwrap_err().reason;
    for class in ["Validation", "ProviderCapability", "ToolTerminal", "Cancellation", "ExtensionHost"] {
        assert!(matches!(write(layer(None, &[(class, policy())], &[])), PlaybookError::Forbidden { .. }), "{class}");
    }
    for verdict in ["idempotency_conflict", "policy_denied", "in_doubt", "schema_mismatch", "unclassified"] {
        let refused = write(layer(None, &[], &[(verdict, policy())]));
        assert!(matches!(refused, PlaybookError::Forbidden { .. }), "{verdict}");
    }
    let shared = layer(None, &[], &[("unclassified", policy())]);
    assert!(layered(&shared, &RetryLayer::default(), EffectKind::Read).is_err(), "it is for writes too");
    let day = crate::limits::WAIT_MS_MAX;
    for endless in [
        sends(0),
        sends(18),
        RetryPolicy { max_ms: Some(day + 1), ..policy() },
        RetryPolicy { initial_ms: Some(2), max_ms: Some(1), ..policy() },
        RetryPolicy { factor: Some(0.5), backoff: Some(Backoff::Exponential), ..policy() },
        RetryPolicy { factor: Some(2.0), ..policy() },
        RetryPolicy { jitter_percent: Some(101), ..policy() },
        RetryPolicy { retryable: false, ..sends(3) },
    ] {
        let refused = write(layer(Some(endless.clone()), &[], &[]));
        assert!(matches!(refused, PlaybookError::Field { .. }), "{endless:?}");
    }
}

#[test]
fn a_playbook_stored_before_codes_had_rules_still_loads_and_decides_as_it_did() {
    let mut stored = serde_json::to_value(Playbook::default()).unwrap();
    stored.as_object_mut().unwrap().remove("codes");
    let old: Playbook = serde_json::from_value(stored).unwrap();
    let rule = old.rule(Verdict::TransientTimeout, Code::ExecutionTimeout);
    assert_eq!(rule.compensation, Compensation::RetryWithBackoff(Ladder::of(&[200, 600, 1800])));
    let tool: Origin = serde_json::from_str("\"tool\"").unwrap();
    assert_eq!(tool, Origin::Tool);
}

#[test]
fn what_is_laid_over_a_playbook_leaves_what_stands_nearer() {
    let contract = Contract { effect: EffectKind::Read, ..Contract::undeclared(0, 0, 0) };
    let rules: PlaybookSpec =
        [("server_error_5xx".to_owned(), RuleSpec { compensation: "surface".into(), ..RuleSpec::default() })].into();
    let none = RetryLayer::default();
    let first = Layers { tool: "pay", shared: &none, own: &none, rules: &rules };
    let playbook = Playbook::layered(first, &contract).unwrap();
    let shared = layer(None, &[("ProviderTransient", sends(2))], &[]);
    let amended =
        playbook.amended(Layers { tool: "pay", shared: &shared, own: &none, rules: &PlaybookSpec::new() }, &contract);
    let amended = amended.unwrap();
    let at = |code: Code| amended.rule(code.verdict(), code).origin;
    assert_eq!(at(Code::Provider5xx), Origin::Tool);
    assert_eq!(at(Code::NetworkTimeout), Origin::Class);
    let both = Layers { tool: "pay", shared: &shared, own: &none, rules: &rules };
    assert_eq!(amended, Playbook::layered(both, &contract).unwrap());
}
