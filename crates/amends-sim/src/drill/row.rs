//! The rows of a drill: what one tool did about one fault, or about two in succession.

use amends_core::interaction::Subject as About;

use super::agent::Manner;
use super::fault::Fault;
use super::promise::Broken;
use super::stage::{Person, Plan, Played, play};
use super::subject::{Assume, Scene, Subject};
use super::told::Told;

/// A question to a person, as a row tells it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Asked {
    /// The queue it is on.
    pub queue: String,
    /// What its answer decides.
    pub about: About,
}

/// What one tool did about one fault, or about two in succession: over every manner of agent and person.
#[derive(Clone, Debug)]
pub struct Row {
    /// What the first attempt met, and the next.
    pub faults: Vec<Fault>,
    /// Whether the first of them met a read before the first send.
    pub reading_first: bool,
    /// What happened beside it.
    pub scene: Scene,
    /// How often the call was sent at most.
    pub sends: u32,
    /// How often the upstream was read at most, for the status or the evidence, or asked to undo.
    pub reads: u32,
    /// How often it took effect at most.
    pub effects: u32,
    /// How often that was undone at most.
    pub undone: u32,
    /// What a polite agent was told, in order.
    pub told: Vec<Told>,
    /// What the other agent was told, where there was one.
    pub other: Vec<Told>,
    /// What people were asked.
    pub asked: Vec<Asked>,
    /// The longest an agent was without an answer.
    pub wait_ms: u64,
    /// How many runs it took.
    pub runs: u32,
    /// The first promise that was broken, with its story.
    pub broken: Option<Story>,
    /// How many attempts there were that could meet a fault.
    met: usize,
}

/// A run in which a promise was broken.
#[derive(Clone, Debug)]
pub struct Story {
    /// Which promise, and what was seen.
    pub broken: Broken,
    /// How the agent behaved.
    pub manner: Manner,
    /// How the person behaved.
    pub person: Person,
    /// Everything that happened, in order.
    pub lines: Vec<String>,
}

/// One tool after its drill.
#[derive(Clone, Debug)]
pub struct Drilled {
    /// The tool.
    pub subject: Subject,
    /// One row for each fault.
    pub singles: Vec<Row>,
    /// One row for each pair whose second fault an attempt met.
    pub pairs: Vec<Row>,
    /// One row for each fault in each other scene: while its token is redeemed, and while another agent writes to its object.
    pub scenes: Vec<Row>,
    /// How many pairs there are whose second fault nothing met, since the call was over.
    pub unmet: u32,
}

impl Drilled {
    /// Every row.
    pub fn rows(&self) -> impl Iterator<Item = &Row> {
        self.singles.iter().chain(&self.scenes).chain(&self.pairs)
    }
}

/// Drills one tool: every fault, and every pair of successive ones if asked for.
pub fn drill(subject: &Subject, assume: Option<Assume>, pairs: bool, seed: u64) -> Drilled {
    let contract = subject.contract();
    let faults: Vec<Fault> = Fault::ALL.into_iter().filter(|fault| fault.concerns(contract)).collect();
    let (manner, person) = (Manner::Polite, Person::Answers);
    let one = |faults: &[Fault], reading_first| {
        row(&Plan { subject, assume, scene: Scene::Alone, faults, reading_first, manner, person, seed })
    };
    let mut singles: Vec<Row> = faults.iter().map(|fault| one(&[*fault], false)).collect();
    let mut paired = Vec::new();
    let mut unmet = 0;
    for first in singles.iter().filter(|_| pairs) {
        // Where nothing was attempted after the first fault, there is nothing that a second one could meet.
        if first.met < 2 {
            unmet += faults.len() as u32 - 1;
            continue;
        }
        let second = faults.iter().filter(|fault| **fault != Fault::Ok);
        paired.extend(second.map(|second| one(&[first.faults[0], *second], false)));
    }
    if subject.reads_first() {
        let reading = faults.iter().filter(|fault| fault.befalls_reading());
        singles.extend(reading.map(|fault| one(&[*fault], true)));
    }
    let mut scenes = Vec::new();
    for (scene, contract) in subject.scenes() {
        let faults = Fault::ALL.into_iter().filter(|fault| fault.concerns(contract));
        let plan = |fault: Fault| {
            row(&Plan { subject, assume, scene, faults: &[fault], reading_first: false, manner, person, seed })
        };
        scenes.extend(faults.map(plan));
    }
    Drilled { subject: subject.clone(), singles, pairs: paired, scenes, unmet }
}

/// Plays a plan with every manner of agent and person, and puts together what was seen.
fn row(plan: &Plan<'_>) -> Row {
    let with = |manner, person| play(Plan { manner, person, ..plan.clone() }, false);
    let mut all = vec![(Manner::Polite, Person::Answers, with(Manner::Polite, Person::Answers))];
    if !plan.subject.contract().effect.is_read() {
        all.push((Manner::Rude, Person::Answers, with(Manner::Rude, Person::Answers)));
    }
    let asking: Vec<Manner> =
        all.iter().filter(|(.., played)| !played.asked.is_empty()).map(|(manner, ..)| *manner).collect();
    all.extend(asking.into_iter().map(|manner| (manner, Person::Silent, with(manner, Person::Silent))));
    let most = |of: fn(&Played) -> u64| all.iter().map(|(.., played)| of(played)).max().unwrap_or_default();
    let mut asked: Vec<Asked> = all.iter().flat_map(|(.., played)| played.asked.clone()).collect();
    asked.sort();
    asked.dedup();
    let first = all.iter().find_map(|(manner, person, played)| Some((*manner, *person, played.broken.clone()?)));
    let broken = first.map(|(manner, person, broken)| {
        let lines = play(Plan { manner, person, ..plan.clone() }, true).log;
        Story { broken, manner, person, lines }
    });
    Row {
        faults: plan.faults.to_vec(),
        reading_first: plan.reading_first,
        scene: plan.scene,
        sends: most(|played| u64::from(played.sends)) as u32,
        reads: most(|played| u64::from(played.reads)) as u32,
        effects: most(|played| u64::from(played.effects)) as u32,
        undone: most(|played| u64::from(played.undone)) as u32,
        wait_ms: most(|played| played.wait_ms),
        met: most(|played| played.met as u64) as usize,
        runs: all.len() as u32,
        other: std::mem::take(&mut all[0].2.other),
        told: all.swap_remove(0).2.told,
        asked,
        broken,
    }
}
