//! The file that is written: upstreams, and what is proposed of their tools.

use std::fmt::Write;

use super::proposal::{self, Proposal, TakenFor};
use super::server::{Source, Written};
use super::toml_text::{comment, key};
use super::tool::Tool;
use crate::cli::live::Seen;

/// How many tools of an upstream get a section.
const TOOLS_MAX: usize = 2_000;

const HEAD: &str = "\
# Written by `amends init`. Read it, and answer its questions.
#
# A line that begins with `#` and no space is a proposal: take the `#` off if the answer to the question above it is yes.
# As it is, this file lets no write be sent twice: what nobody vouches for is a write, and a write in doubt is never repeated.

[ledger]
url = \"sqlite:amends.db\"

[listen]
http = \"127.0.0.1:7070\"
";

/// One upstream of the file.
#[derive(Debug)]
pub(super) struct Part {
    /// Where it comes from.
    pub(super) source: Source,
    /// How it is written.
    pub(super) written: Written,
    /// Why it cannot be an upstream, if it cannot.
    pub(super) unfit: Option<String>,
    /// What came of looking at it; nothing where nobody looked.
    pub(super) seen: Option<Seen>,
}

/// How many tools were found, and what they were taken for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) reads: usize,
    pub(super) writes: usize,
    pub(super) questions: usize,
}

impl Part {
    /// The section of the upstream, which stands on its own.
    pub(super) fn section(&self, alone: bool) -> String {
        let mut text = format!("[upstreams.{}]\n", key(&self.source.name));
        for line in &self.written.lines {
            text.push_str(line);
            text.push('\n');
        }
        if alone {
            text.push_str("prefix = \"\"    # one upstream, so its tools keep their names\n");
        }
        text
    }
}

/// The whole file. `alone` says that there is one upstream, whose tools keep their names.
pub(super) fn page(parts: &[Part], alone: bool, trusted: bool) -> (String, Tally) {
    let mut text = HEAD.to_owned();
    let mut tally = Tally::default();
    for part in parts {
        upstream(&mut text, part, alone);
        if part.unfit.is_none() {
            tools(&mut text, part, trusted, &mut tally);
        }
    }
    (text, tally)
}

fn upstream(text: &mut String, part: &Part, alone: bool) {
    let say = |text: &mut String, words: &str| {
        // Writing into a text cannot fail.
        let _ = writeln!(text, "# {}", comment(words));
    };
    text.push('\n');
    say(text, &format!("From {}.", part.source.from));
    for remark in part.source.remarks(&part.written) {
        say(text, &format!("Note: {remark}."));
    }
    for (variable, origin) in &part.written.wants {
        say(text, &format!("It wants the variable `{variable}`, whose value was in {origin}."));
    }
    if let Some(reason) = &part.unfit {
        say(text, &format!("It cannot be an upstream as it is: {reason}"));
        for line in part.section(alone).lines() {
            let _ = writeln!(text, "#{line}");
        }
        return;
    }
    match &part.seen {
        Some(Seen::Up(presence)) => {
            let software = presence.software.as_deref().unwrap_or("It");
            say(text, &format!("{software} answered: {}, {} tools.", presence.era, presence.tools.len()));
        }
        Some(Seen::Down(absence)) => {
            say(text, &format!("It did not answer, so nothing is known of its tools: {}", absence.reason));
        }
        None => say(text, "It was not started, so nothing is known of its tools."),
    }
    text.push_str(&part.section(alone));
    if text_is_url(part) {
        text.push_str("# Does its 429 mean that nothing was done? Then such a call may be sent again.\n");
        text.push_str("#rejects_before_effect = [429]\n");
    }
}

fn text_is_url(part: &Part) -> bool {
    matches!(part.source.reach, crate::cli::clients::ServerReach::Url { .. })
}

fn tools(text: &mut String, part: &Part, trusted: bool, tally: &mut Tally) {
    let Some(Seen::Up(presence)) = &part.seen else { return };
    let tools: Vec<Tool> = presence.tools.iter().map(Tool::of).collect();
    for tool in tools.iter().take(TOOLS_MAX) {
        let proposal = proposal::of(tool, &tools, trusted);
        match proposal.taken_for {
            TakenFor::Read => tally.reads += 1,
            TakenFor::Write => tally.writes += 1,
        }
        tally.questions += proposal.lines.iter().filter(|line| !line.counts).count();
        section(text, tool, &proposal);
    }
    if tools.len() > TOOLS_MAX {
        let _ = writeln!(text, "\n# {} more tools have no section: they count as writes.", tools.len() - TOOLS_MAX);
    }
}

fn section(text: &mut String, tool: &Tool, proposal: &Proposal) {
    text.push('\n');
    let said = comment(tool.description.lines().find(|line| !line.trim().is_empty()).unwrap_or_default());
    if !said.is_empty() {
        let _ = writeln!(text, "# The server says: {said}");
    }
    for words in &proposal.seen {
        let _ = writeln!(text, "# {}", comment(words));
    }
    let mark = if proposal.counts { "" } else { "#" };
    let _ = writeln!(text, "{mark}[tools.{}]", key(&tool.served));
    for line in &proposal.lines {
        if line.counts {
            let _ = writeln!(text, "{}    # {}", line.toml, line.why);
        } else {
            let _ = writeln!(text, "# {}\n#{}", comment(&line.why), line.toml);
        }
    }
}
