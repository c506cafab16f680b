//! What is proposed of a tool, and from what. Nothing here makes a write resendable: that takes a person's word.

use super::mapping::{self, Mapping};
use super::toml_text::quoted;
use super::tool::{Field, Tool};
use super::words::{Manner, READS_ONE};

/// What is proposed of one tool.
#[derive(Debug)]
pub(super) struct Proposal {
    /// Whether its section counts as it is, or waits for a person's word as a whole.
    pub(super) counts: bool,
    /// What it was taken for.
    pub(super) taken_for: TakenFor,
    /// Sentences on what was seen.
    pub(super) seen: Vec<String>,
    /// Lines of its section.
    pub(super) lines: Vec<Line>,
}

/// What a tool was taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TakenFor {
    /// It seems to read.
    Read,
    /// It is a write until somebody says otherwise.
    Write,
}

/// A line of a tool's section.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// What the configuration would say.
    pub(super) toml: String,
    /// Whether it says so already.
    pub(super) counts: bool,
    /// The question whose yes makes it true, or why it counts.
    pub(super) why: String,
}

impl Line {
    fn ask(toml: String, question: &str) -> Self {
        Self { toml, counts: false, why: question.to_owned() }
    }
}

/// What is proposed of a tool among its upstream's tools. `trusted` is a person's word for the server's own hints.
pub(super) fn of(tool: &Tool, all: &[Tool], trusted: bool) -> Proposal {
    let mut seen = Vec::new();
    let said_to_read = tool.read_only == Some(true);
    let verb = tool.words.verb.as_ref();
    let named_to_read = tool.words.manner() == Some(Manner::Reads);
    let contradicted = said_to_read && verb.is_some() && !named_to_read;
    if contradicted {
        let (verb, _) = verb.expect("it was looked at");
        seen.push(format!("The server says that it only reads, and its name says `{verb}`: it counts as a write."));
    } else if said_to_read {
        seen.push("The server says that it only reads (`readOnlyHint`). Nobody has checked that.".to_owned());
    } else if named_to_read && tool.read_only != Some(false) {
        seen.push(format!(
            "Its name says `{}`; the server does not say that it only reads.",
            verb.map_or("", |(verb, _)| verb)
        ));
    }
    let reads = !contradicted
        && (said_to_read || (named_to_read && tool.read_only != Some(false) && tool.destructive != Some(true)));
    if reads {
        let counts = trusted && said_to_read;
        let why = if counts {
            "its server's hints are trusted"
        } else {
            "Does it change nothing? Then it may be sent again."
        };
        let effect = Line { toml: "effect = \"read\"".into(), counts, why: why.into() };
        return Proposal { counts, taken_for: TakenFor::Read, seen, lines: vec![effect] };
    }
    if tool.destructive == Some(true) {
        seen.push("The server says that it can destroy something (`destructiveHint`).".to_owned());
    }
    let mut lines = vec![effect(tool, trusted)];
    if let Some(key) = tool.key_argument() {
        lines.push(Line::ask(
            format!("key = {{ argument = {}, window = \"24h\" }}", quoted(key)),
            "For how long does it remember a key? Also across its own restart: `durable = true`.",
        ));
    }
    status(tool, all, &mut lines, &mut seen);
    reverse(tool, all, &mut lines, &mut seen);
    if let Some(object) = object(tool) {
        lines.push(Line::ask(
            format!("object = {}", quoted(&mapping::reach("args", object))),
            "Is this what it writes to? Then one write to it at a time is in doubt.",
        ));
    }
    evidence(tool, all, &mut lines);
    Proposal { counts: true, taken_for: TakenFor::Write, seen, lines }
}

/// The effect of a tool that may write. It stands there once: without it the tool is a write.
fn effect(tool: &Tool, trusted: bool) -> Line {
    if let Some(key) = tool.key_argument() {
        let question = format!(
            "It takes `{key}`. Does the same key twice have one effect? Then it may be sent again with its key."
        );
        return Line { toml: "effect = \"keyed\"".into(), counts: false, why: question };
    }
    match (tool.idempotent, trusted) {
        (Some(true), true) => {
            Line { toml: "effect = \"idempotent\"".into(), counts: true, why: "its server's hints are trusted".into() }
        }
        (Some(true), false) => Line::ask(
            "effect = \"idempotent\"".into(),
            "The server says so (`idempotentHint`). Does the same call twice end like once? Then it may be sent again.",
        ),
        _ => Line {
            toml: "effect = \"write\"".into(),
            counts: true,
            why: "it is sent once; a doubt is settled by its status, else by a person".into(),
        },
    }
}

/// The read that tells whether the effect happened.
fn status(tool: &Tool, all: &[Tool], lines: &mut Vec<Line>, seen: &mut Vec<String>) {
    let Some(reader) = reader(tool, all) else { return };
    match mapping::for_status(tool, reader) {
        Mapping::Whole(args) => {
            lines.push(Line::ask(
                format!(
                    "status = {{ tool = {}, args = {{ {args} }}, happened = {} }}",
                    quoted(&reader.served),
                    quoted(&happened(reader))
                ),
                "Does this read tell whether it happened? What in its answer says so?",
            ));
            lines.push(Line::ask(
                "settles_within = \"30s\"".into(),
                "After which time can a request that was sent no longer take effect?",
            ));
        }
        Mapping::Missing(field) => seen.push(format!(
            "`{}` looks like its reader, and wants `{field}`, which the call does not tell: is there a read by something that it does?",
            reader.served
        )),
        Mapping::Nothing => seen.push(format!("`{}` looks like its reader, and takes nothing that names this effect.", reader.served)),
    }
}

fn happened(reader: &Tool) -> String {
    let truth = |name: &str| reader.output.all().any(|(field, Field { kind, .. })| field == name && kind == "boolean");
    if let Some(name) = ["found", "exists", "done", "happened"].into_iter().find(|name| truth(name)) {
        return format!("result.{name}");
    }
    let first = reader.output.all().find(|(name, field)| field.kind == "boolean" && mapping::is_plain(name));
    first.map_or_else(|| "has(result.id)".to_owned(), |(name, _)| format!("result.{name}"))
}

/// The tool that undoes it.
fn reverse(tool: &Tool, all: &[Tool], lines: &mut Vec<Line>, seen: &mut Vec<String>) {
    if !matches!(tool.words.manner(), Some(Manner::Makes)) || tool.words.noun.is_empty() {
        return;
    }
    let undoes = |other: &&Tool| {
        other.words.manner() == Some(Manner::Undoes)
            && other.words.noun == tool.words.noun
            && other.served != tool.served
    };
    let Some(undo) = all.iter().find(undoes) else { return };
    match mapping::for_reverse(tool, undo) {
        Mapping::Whole(args) => lines.push(Line::ask(
            format!("reverse = {{ tool = {}, args = {{ {args} }}, within = \"24h\" }}", quoted(&undo.served)),
            "Does this undo it, and until when? Then its answer gives a token.",
        )),
        Mapping::Missing(field) => seen.push(format!(
            "`{}` may undo it, and wants `{field}`, which neither the call nor its answer is known to tell.",
            undo.served
        )),
        Mapping::Nothing => {}
    }
}

/// What a change is based on.
fn evidence(tool: &Tool, all: &[Tool], lines: &mut Vec<Line>) {
    if tool.words.manner() != Some(Manner::Changes) {
        return;
    }
    let Some(reader) = reader(tool, all) else { return };
    if let Mapping::Whole(args) = mapping::for_evidence(tool, reader) {
        lines.push(Line::ask(
            format!("evidence = [{{ tool = {}, args = {{ {args} }} }}]", quoted(&reader.served)),
            "Must it fail if this has changed since the agent read it?",
        ));
    }
}

/// The tool that reads what another one writes.
fn reader<'a>(tool: &Tool, all: &'a [Tool]) -> Option<&'a Tool> {
    let noun = &tool.words.noun;
    if noun.is_empty() {
        return None;
    }
    let about = |other: &&Tool| other.words.noun == *noun || other.words.noun == format!("{noun}_status");
    let may_read = |other: &&Tool| other.read_only != Some(false) && other.words.manner() == Some(Manner::Reads);
    let place =
        |other: &&Tool| READS_ONE.iter().position(|verb| other.words.is(verb)).map(|at| (at, other.served.clone()));
    all.iter().filter(about).filter(may_read).filter(|other| place(other).is_some()).min_by_key(place)
}

/// The argument that names what is written.
fn object(tool: &Tool) -> Option<&str> {
    let noun = &tool.words.noun;
    let required: Vec<&str> = tool
        .input
        .required()
        .filter(|(name, field)| {
            mapping::is_plain(name)
                && !super::tool::is_key(name)
                && ["string", "integer", "number", ""].contains(&field.kind.as_str())
        })
        .map(|(name, _)| name)
        .collect();
    let own = [format!("{noun}_id"), format!("{noun}Id"), "id".to_owned(), noun.clone()];
    let own = own.iter().find_map(|wanted| required.iter().find(|name| *name == wanted));
    let any_id = || required.iter().find(|name| name.ends_with("_id") || name.ends_with("Id") || **name == "uuid");
    let known = || {
        let things = [
            "order",
            "account",
            "invoice",
            "customer",
            "user",
            "path",
            "file",
            "repo",
            "repository",
            "branch",
            "bucket",
            "table",
            "channel",
            "ticket",
            "issue",
        ];
        required.iter().find(|name| things.contains(name))
    };
    own.or_else(any_id).or_else(known).copied()
}
