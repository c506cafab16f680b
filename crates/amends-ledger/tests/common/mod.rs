//! What the store tests are made of: nodes, steps, and a store of each kind.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::path::PathBuf;

use amends_core::attempt::Payload;
use amends_core::call::Received;
use amends_core::claim::{Claim, ClaimKind};
use amends_core::interaction::{InteractionKind, Subject, choice};
use amends_core::{
    CallId, Certainty, ClaimChange, Digest, Event, Fact, Gates, Held, Interaction, Outcome, PersonAnswer, SessionId,
    Timestamp,
};
use amends_ledger::{
    Append, Error, Form, Ledger, Letter, MemoryLedger, Node, OpenWork, SqliteLedger, StoredAnswer, StoredArguments,
    Vault, Verified, VerifyOptions, new_key, verify,
};
use tempfile::TempDir;

/// How long a node's heartbeat counts in the tests.
pub(crate) const LEASE_MS: u64 = 1_000;

pub(crate) fn ms(ms: u64) -> Timestamp {
    Timestamp::from_ms(ms)
}

/// A node whose death nobody can see.
pub(crate) fn node(id: &str) -> Node {
    Node { id: id.into(), place: String::new(), lease_ms: LEASE_MS }
}

/// A store that can be reached by several nodes.
pub(crate) trait Store: Sync {
    /// Another node's handle on it.
    fn join(&self, node: Node) -> Box<dyn Ledger>;
}

pub(crate) struct Memory(MemoryLedger);

impl Memory {
    pub(crate) fn new() -> Self {
        Self(MemoryLedger::new(node("first")))
    }
}

impl Store for Memory {
    fn join(&self, node: Node) -> Box<dyn Ledger> {
        Box::new(self.0.share(node))
    }
}

pub(crate) struct Sqlite(pub(crate) TempDir);

impl Sqlite {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("ledger.db")
    }

    pub(crate) fn open(&self, id: &str) -> SqliteLedger {
        SqliteLedger::open(&self.path(), node(id)).unwrap()
    }

    /// A connection with which anything can be done to the file.
    pub(crate) fn raw(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.path()).unwrap()
    }
}

impl Store for Sqlite {
    fn join(&self, node: Node) -> Box<dyn Ledger> {
        Box::new(SqliteLedger::open(&self.path(), node).unwrap())
    }
}

/// A store in a file whose payloads are sealed.
pub(crate) struct Sealed(Sqlite, String);

impl Sealed {
    pub(crate) fn new() -> Self {
        Self(Sqlite::new(), new_key().unwrap())
    }
}

impl Store for Sealed {
    fn join(&self, node: Node) -> Box<dyn Ledger> {
        let vault = Vault::parse(&self.1).unwrap();
        Box::new(SqliteLedger::open(&self.0.path(), node).unwrap().with_vault(vault))
    }
}

/// A step with these facts, all at one time, under epoch 1.
pub(crate) fn step(session: &str, expected_seq: u64, at: u64, facts: Vec<Fact>) -> Append {
    let numbered = facts.into_iter().zip(expected_seq + 1..);
    let events = numbered.map(|(fact, seq)| Event { v: 1, seq, at: ms(at), fact }).collect();
    Append::of(session.into(), 1, expected_seq, events)
}

/// A step that opens a session, and adds so many events to it.
pub(crate) fn open(session: &str, at: u64, more: u64) -> Append {
    let mut facts = vec![opened(session)];
    facts.extend((0..more).map(|n| note(&format!("{session} {n}"))));
    step(session, 0, at, facts)
}

/// A step that opens a session with these claims.
pub(crate) fn claiming(session: &str, at: u64, claims: Vec<ClaimChange>) -> Append {
    Append { claims, ..open(session, at, 0) }
}

/// The same step with a call left open.
pub(crate) fn busy(append: Append) -> Append {
    Append { open: OpenWork { calls: 1, due: Some(ms(9_000)) }, ..append }
}

pub(crate) fn opened(session: &str) -> Fact {
    Fact::SessionOpened {
        session: session.into(),
        seed: 7,
        principal: "local".into(),
        door: "mcp".into(),
        tenant: None,
        decider: Default::default(),
    }
}

pub(crate) fn note(why: &str) -> Fact {
    Fact::Ignored { why: why.into() }
}

pub(crate) fn received(call: &str) -> Fact {
    let received = Received {
        call: call.into(),
        tool: "pay".into(),
        upstream: "shop".into(),
        rules: "r".into(),
        arguments: Payload { digest: "d".into(), size: 2 },
        principal: "local".into(),
        deadline: ms(60_000),
        key: None,
        claims: Vec::new(),
        effect_key: "k".into(),
        repeat_of: None,
        evidence: Vec::new(),
        reversal: None,
        redeems: None,
        view: None,
        leg: None,
        reads: false,
    };
    Fact::CallReceived { received: Box::new(received), gates: Gates::default() }
}

/// Takes a claim that must be free.
pub(crate) fn take(name: &str, call: &str) -> ClaimChange {
    take_as(ClaimKind::Arguments, name, call, None)
}

pub(crate) fn take_as(kind: ClaimKind, name: &str, call: &str, over: Option<&str>) -> ClaimChange {
    ClaimChange::Take {
        claim: Claim { name: name.into(), fingerprint: format!("fp-{call}").as_str().into(), kind },
        call: call.into(),
        effect_key: format!("key-{call}"),
        since: ms(10),
        over: over.map(CallId::from),
    }
}

/// The call that holds a claim.
pub(crate) async fn holder(ledger: &dyn Ledger, name: &str, now: u64) -> Option<String> {
    held(ledger, name, now).await.map(|held| held.call.to_string())
}

pub(crate) async fn held(ledger: &dyn Ledger, name: &str, now: u64) -> Option<Held> {
    ledger.held(&Digest::from(name), ms(now)).await.unwrap()
}

/// What verifying a ledger finds without an anchor.
pub(crate) async fn verified(ledger: &dyn Ledger) -> Result<Verified, Error> {
    verify(ledger, VerifyOptions::default()).await
}

/// How many events a session has.
pub(crate) async fn length(ledger: &dyn Ledger, session: &str) -> usize {
    ledger.trace(&SessionId::from(session)).await.unwrap().map_or(0, |trace| trace.events.len())
}

pub(crate) fn answer(call: &str, until: u64) -> StoredAnswer {
    StoredAnswer {
        call: call.into(),
        outcome: Outcome::SucceededAfterCompensation,
        certainty: Certainty::Processed,
        form: Form::Forward,
        body: bytes::Bytes::from_static(b"{\"paid\":true}"),
        until: ms(until),
    }
}

pub(crate) fn arguments(call: &str) -> StoredArguments {
    StoredArguments { call: call.into(), body: bytes::Bytes::from_static(b"{\"order\":1}") }
}

/// A question whether a call that is in doubt happened.
pub(crate) fn question(id: &str, session: &str, due: u64) -> Interaction {
    Interaction {
        id: id.into(),
        session: session.into(),
        call: "c".into(),
        tool: "pay".into(),
        principal: "local".into(),
        queue: "payments".into(),
        kind: InteractionKind::Select,
        subject: Subject::Doubt,
        question: "Did \"pay\" happen?".into(),
        view: None,
        options: vec![choice::HAPPENED.into(), choice::DID_NOT_HAPPEN.into()],
        default: choice::UNKNOWN.into(),
        opened: ms(5),
        due: ms(due),
        arrives_by: None,
        grounds: None,
        gives: None,
    }
}

/// A step that opens a session and asks that.
pub(crate) fn asking(session: &str, asks: Vec<Interaction>) -> Append {
    Append { asks, ..open(session, 5, 0) }
}

pub(crate) fn said(choice: &str, by: &str, at: u64) -> PersonAnswer {
    PersonAnswer { choice: choice.into(), by: by.into(), note: None, at: ms(at), content: None }
}

pub(crate) fn letter(place: Option<&str>, body: &str) -> Letter {
    Letter { place: place.map(str::to_owned), session: Some("s".into()), body: serde_json::json!({ "says": body }) }
}
