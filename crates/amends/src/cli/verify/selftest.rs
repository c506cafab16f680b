//! `amends verify --selftest`: touch a ledger in every way we know of, and see which ones are found.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use amends_core::attempt::Payload;
use amends_core::{Call, Contract, Dispatcher, Effect, Gates, Input, Playbook, Report, Rules, Step, Timestamp};
use amends_gateway::Signer;
use amends_ledger::anchor::Anchor;
use amends_ledger::note::NoteKey;
use amends_ledger::{
    Append, FaultKind, Ledger, Node, OpenWork, SqliteLedger, Verified, VerifyOptions, digest, origin, rules_digest,
};
use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::super::outcome::print;
use crate::attacks::{ATTACKS, Site};

/// How many sessions the ledger has. The second half of them comes after the copy that is restored.
const SESSIONS: u64 = 6;

pub(super) async fn run(as_json: bool) -> Result<ExitCode> {
    let folder = tempfolder()?;
    let done = attack_all(&folder, as_json).await;
    std::fs::remove_dir_all(&folder).context("cannot remove the temporary folder")?;
    done
}

async fn attack_all(folder: &Path, as_json: bool) -> Result<ExitCode> {
    let (site, key) = make(&folder.join("made")).await?;
    let untouched = look(&site, &key).await?;
    ensure!(untouched.faults.is_empty(), "a ledger that nobody touched has faults: {:?}", untouched.faults);
    ensure!(
        untouched.proven.is_some() && untouched.decided == SESSIONS,
        "the ledger was not looked at as it should be"
    );
    let mut missed = 0;
    let mut lines = Vec::new();
    for (number, attack) in ATTACKS.iter().enumerate() {
        let copy = site.copy_to(&folder.join(number.to_string()))?;
        attack.run(&copy)?;
        let kinds: Vec<FaultKind> = look(&copy, &key).await?.faults.iter().map(|fault| fault.kind).collect();
        let found = kinds.contains(&attack.found_as);
        missed += usize::from(!found);
        if as_json {
            lines.push(json!({ "attack": attack.name, "found": found, "as": attack.found_as.as_str() }).to_string());
        } else {
            let word = if found { "found    " } else { "NOT FOUND" };
            lines.push(format!("{word}  {} ({})", attack.name, attack.found_as.as_str()));
        }
    }
    if !as_json {
        lines.push(format!(
            "{} of {} found; a ledger that nobody touched has no fault",
            ATTACKS.len() - missed,
            ATTACKS.len()
        ));
    }
    print(&lines.join("\n"))?;
    Ok(if missed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

async fn look(site: &Site, key: &NoteKey) -> Result<Verified> {
    let anchor = Some(Anchor::read(&site.anchor())?);
    let ledger = open(site)?;
    Ok(amends_ledger::verify(&*ledger, VerifyOptions { anchor, key: Some(key.verifier()) }).await?)
}

fn open(site: &Site) -> Result<Arc<dyn Ledger>> {
    Ok(Arc::new(SqliteLedger::open(&site.ledger(), Node::this_process(60_000)?)?))
}

/// Makes a ledger as a gateway would: each session has one write that was done.
async fn make(folder: &Path) -> Result<(Site, NoteKey)> {
    std::fs::create_dir_all(folder)?;
    let site = Site::at(folder);
    let ledger = open(&site)?;
    let key = NoteKey::new(&origin(&ledger.secret()), &[7; 32])?;
    for number in 0..SESSIONS {
        if number == SESSIONS / 2 {
            sign(&site, &ledger, &key).await?;
            rusqlite::Connection::open(site.ledger())?.execute("VACUUM INTO ?1", [site.older().to_string_lossy()])?;
        }
        record(&*ledger, number).await?;
    }
    sign(&site, &ledger, &key).await?;
    drop(ledger);
    Ok((site, key))
}

async fn sign(site: &Site, ledger: &Arc<dyn Ledger>, key: &NoteKey) -> Result<()> {
    Signer::new(ledger.clone(), key.clone(), Some(site.anchor())).sign().await?;
    Ok(())
}

async fn record(ledger: &dyn Ledger, number: u64) -> Result<()> {
    let session = format!("ses_{number}");
    let mut dispatcher = Dispatcher::open(session.as_str().into(), number, "local".into(), "selftest");
    let now = Timestamp::from_ms(1_000 + number);
    let rules =
        Arc::new(Rules { contract: Contract::undeclared(5_000, 50_000, 60_000), playbook: Playbook::default() });
    let rules_hash = rules_digest(&rules);
    let call = Call {
        id: format!("call_{number}").as_str().into(),
        tool: "pay".into(),
        upstream: "shop".into(),
        rules: rules.clone(),
        rules_hash: rules_hash.clone(),
        arguments: Payload { digest: digest(b"{}"), size: 2 },
        principal: "local".into(),
        deadline: now + 50_000,
        key: None,
        claims: Vec::new(),
        effect_key: format!("key_{number}"),
        repeat_of: None,
        evidence: Vec::new(),
        reversal: None,
        redeems: None,
        view: None,
        leg: None,
    };
    let received = dispatcher.handle(now, &Gates::default(), Input::Call(Box::new(call)));
    let attempt = received.effects.iter().find_map(|effect| match effect {
        Effect::Send(attempt) => Some(attempt.id.clone()),
        _ => None,
    });
    let report = Report::success(Some(Payload { digest: digest(b"{}"), size: 2 }));
    let result = Input::Result { attempt: attempt.context("nothing was sent")?, report: Box::new(report) };
    let ended = dispatcher.handle(now + 7, &Gates::default(), result);
    let mut seq = 0;
    for (Step { events, claims, .. }, calls) in [(received, 1), (ended, 0)] {
        let open = OpenWork { calls, due: None };
        let rules = vec![(rules_hash.clone(), rules.clone())];
        let append = Append { claims, rules, open, ..Append::of(session.as_str().into(), 1, seq, events) };
        seq = ledger.append(append).await?.seq;
    }
    Ok(())
}

fn tempfolder() -> Result<std::path::PathBuf> {
    let folder =
        std::env::temp_dir().join(format!("amends-selftest-{}-{}", std::process::id(), amends_gateway::mint::token()));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make `{}`", folder.display()))?;
    Ok(folder)
}
