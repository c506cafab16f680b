//! The tools of the world: one for every kind of contract.

pub mod machines;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use amends_core::contract::{KeyPlace, Place, Reading, Reverse, StatusReader};
use amends_core::expression::Expression;
use amends_core::playbook::RuleSpec;
use amends_core::{Contract, Digest, EffectKind, Playbook, Rules, ToolName, UpstreamName};

use crate::flaw::Flaw;

/// How long a person has for an answer: some worlds outlast it, and some answers.
const ANSWER_WITHIN_MS: u64 = 30_000;
/// How long an agent has for what an upstream asks of it.
pub(crate) const INPUT_WITHIN_MS: u64 = 6_000;
/// For how long a write can be undone: some agents come too late.
pub const UNDO_WITHIN_MS: u64 = 25_000;
/// How long an answer that may not have arrived is given again: longer than any world lasts.
const REPEAT_WINDOW_MS: u64 = 60 * 60 * 1000;
/// A key's window that is longer than any world.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;
/// A key's window that a world outlasts.
pub const SHORT_WINDOW_MS: u64 = 90_000;

/// The upstream whose restarts can be seen, since it runs as our own process.
pub const SHOP: usize = 0;
/// The upstream whose restarts cannot be seen.
pub const BANK: usize = 1;
/// Their names.
pub const UPSTREAMS: [&str; 2] = ["shop", "bank"];

/// A tool as the world knows it.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its name.
    pub name: ToolName,
    /// Where it lives, as an index.
    pub place: usize,
    /// Where it lives, by name.
    pub upstream: UpstreamName,
    /// What governs it.
    pub rules: Arc<Rules>,
    /// The digest of that.
    pub hash: Digest,
    /// How long a request really can live.
    pub life_ms: u64,
    /// What it writes, where calls of it must not be under way at once.
    pub object: Option<&'static str>,
    /// The tool that undoes it, as an index.
    pub undo: Option<usize>,
}

impl Tool {
    /// Its contract.
    pub fn contract(&self) -> &Contract {
        &self.rules.contract
    }

    /// How many persons must say yes to a call of it, in worlds in which people are asked first.
    pub fn persons(&self) -> u8 {
        [0, 1, 2, 1][self.name.as_str().len() % 4]
    }

    /// What it does to the world.
    pub fn effect(&self) -> EffectKind {
        self.contract().effect
    }

    /// Whether its status is told by the difference from a baseline.
    pub fn by_baseline(&self) -> bool {
        self.contract().needs_baseline()
    }

    /// Whether the operator takes the upstream's word for that status.
    pub fn believes(&self, status: u16) -> bool {
        self.contract().rejects_before_effect.contains(&status)
    }
}

/// Every tool, as the operator declared it.
pub fn tools(flaw: Option<Flaw>) -> &'static [Tool] {
    static HONEST: OnceLock<Vec<Tool>> = OnceLock::new();
    static HASTY: OnceLock<Vec<Tool>> = OnceLock::new();
    if flaw == Some(Flaw::NegativeAtOnce) {
        return HASTY.get_or_init(|| {
            build(|contract| {
                contract.settles_within_ms = contract.settles_within_ms.map(|_| 0);
            })
        });
    }
    HONEST.get_or_init(|| build(|_| {}))
}

/// The rules of that digest, as the operator declared them.
pub(crate) fn rules(hash: &Digest) -> Option<Arc<Rules>> {
    tools(None).iter().find(|tool| tool.hash == *hash).map(|tool| tool.rules.clone())
}

fn build(declare: impl Fn(&mut Contract)) -> Vec<Tool> {
    let plain = || Contract {
        declared: true,
        answer_within_ms: ANSWER_WITHIN_MS,
        input_within_ms: INPUT_WITHIN_MS,
        ..Contract::undeclared(3_000, 20_000, REPEAT_WINDOW_MS)
    };
    let of = |effect| Contract { effect, ..plain() };
    let keyed = |window_ms, durable| Contract {
        key: Some(KeyPlace { place: Place::Argument("key".into()), window_ms, durable }),
        ..of(EffectKind::Keyed)
    };
    let read = |contract: Contract, by_key, settles_within_ms| Contract {
        status: Some(StatusReader {
            tool: "status".into(),
            args: BTreeMap::new(),
            happened: Expression::parse("result.found").expect("it is an expression"),
            by_key,
        }),
        settles_within_ms,
        ..contract
    };
    let rule = |verdict: &str, compensation: &str| {
        let spec = RuleSpec { compensation: compensation.into(), ..RuleSpec::default() };
        BTreeMap::from([(verdict.to_owned(), spec)])
    };
    let undoes_itself = || {
        let mut rules = rule("schema_mismatch", "issue_reversal");
        rules.extend(rule("cancelled", "issue_reversal"));
        rules
    };
    let asks = || {
        let verdicts = ["upstream_unavailable", "rate_limited", "input_rejected", "schema_mismatch"];
        verdicts.iter().flat_map(|verdict| rule(verdict, "escalate_to_human")).collect()
    };
    let reversible = |contract: Contract, undo: &str| Contract {
        reverse: Some(Reverse { tool: undo.into(), args: BTreeMap::new(), within_ms: UNDO_WITHIN_MS }),
        ..contract
    };
    let object = |contract: Contract| Contract {
        object: Some(Expression::parse("args.id").expect("it is an expression")),
        ..contract
    };
    let based_on = |contract: Contract, facts: &[&str]| Contract {
        evidence: facts.iter().map(|fact| Reading { tool: (*fact).into(), args: BTreeMap::new() }).collect(),
        ..contract
    };
    let none = BTreeMap::new;
    let table = [
        ("look", SHOP, of(EffectKind::Read), none()),
        ("look_twice", BANK, of(EffectKind::Read), rule("schema_mismatch", "retry_with_backoff")),
        ("label", SHOP, of(EffectKind::Idempotent), none()),
        ("charge_durable", SHOP, Contract { timeout_ms: 7_000, ..keyed(DAY_MS, true) }, none()),
        ("charge_process", SHOP, keyed(DAY_MS, false), none()),
        ("charge_short", SHOP, Contract { settles_within_ms: Some(20_000), ..keyed(SHORT_WINDOW_MS, true) }, none()),
        ("charge_bank", BANK, keyed(DAY_MS, false), none()),
        ("pay_read", SHOP, read(keyed(DAY_MS, true), true, Some(10_000)), none()),
        ("pay_process_read", SHOP, read(keyed(DAY_MS, false), true, Some(10_000)), none()),
        ("pay_unsettled", BANK, read(keyed(DAY_MS, false), true, None), none()),
        ("mail_bare", SHOP, Contract { declared: false, ..plain() }, none()),
        ("mail", SHOP, Contract { timeout_ms: 9_000, ..plain() }, none()),
        ("mail_surface", BANK, plain(), rule("in_doubt", "escalate_to_human")),
        ("order_by_key", SHOP, read(plain(), true, Some(8_000)), none()),
        ("order_by_baseline", SHOP, read(plain(), false, Some(8_000)), none()),
        ("order_unsettled", BANK, read(plain(), true, None), none()),
        (
            "order_trusted",
            BANK,
            Contract { rejects_before_effect: vec![429, 503], ..read(plain(), true, Some(25_000)) },
            none(),
        ),
        ("mail_asked", SHOP, plain(), asks()),
        ("charge_asked", BANK, Contract { rejects_before_effect: vec![429], ..keyed(DAY_MS, true) }, asks()),
        ("stock_add", SHOP, object(plain()), none()),
        ("stock_set", SHOP, object(of(EffectKind::Idempotent)), none()),
        ("stock_move", SHOP, object(keyed(DAY_MS, false)), none()),
        ("ship", SHOP, based_on(plain(), &["stock", "address"]), none()),
        ("ship_by_baseline", SHOP, based_on(read(plain(), false, Some(8_000)), &["stock"]), none()),
        ("ship_keyed", BANK, based_on(keyed(DAY_MS, true), &["address"]), none()),
        ("unlabel", SHOP, of(EffectKind::Idempotent), none()),
        ("refund", SHOP, keyed(DAY_MS, true), none()),
        ("recall", BANK, plain(), none()),
        ("restock", SHOP, object(read(plain(), true, Some(8_000))), none()),
        ("label_undone", SHOP, reversible(of(EffectKind::Idempotent), "unlabel"), undoes_itself()),
        ("charge_undone", SHOP, reversible(keyed(DAY_MS, true), "refund"), undoes_itself()),
        ("order_undone", BANK, reversible(read(plain(), true, Some(8_000)), "recall"), none()),
        ("mail_undone", BANK, reversible(plain(), "recall"), undoes_itself()),
        ("stock_take", SHOP, based_on(object(reversible(plain(), "restock")), &["stock"]), undoes_itself()),
        ("stock_price", SHOP, object(reversible(of(EffectKind::Idempotent), "restock")), undoes_itself()),
    ];
    let place_of = |name: &str| table.iter().position(|(other, ..)| *other == name);
    let undoing: Vec<Option<usize>> = table
        .iter()
        .map(|(_, _, contract, _)| contract.reverse.as_ref().and_then(|reverse| place_of(&reverse.tool)))
        .collect();
    let tool = |((name, place, contract, spec), undo): ((&str, usize, Contract, _), Option<usize>)| {
        let life_ms = contract.request_life_ms();
        let playbook = Playbook::parse(&spec, &contract).expect("it is a playbook");
        let mut contract = contract;
        declare(&mut contract);
        Tool {
            name: name.into(),
            place,
            upstream: UPSTREAMS[place].into(),
            object: contract.object.is_some().then_some("stock"),
            undo,
            rules: Arc::new(Rules { contract, playbook }),
            hash: Digest::new(format!("rules-{name}")),
            life_ms,
        }
    };
    table.into_iter().zip(undoing).map(tool).collect()
}
