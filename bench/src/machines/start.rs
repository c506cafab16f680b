//! How long a server takes until its first answer, and how much memory it has.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::order::message;
use super::peer::{Peer, Place, Server, Transport};
use crate::{caller, cpu};

/// One server's starts.
#[derive(Debug)]
pub(crate) struct Start {
    pub(crate) peer: Peer,
    pub(crate) transport: Transport,
    /// From the process to its first list of tools, with nothing recorded yet.
    pub(crate) first: Vec<Duration>,
    /// The same, with what the one before recorded.
    pub(crate) again: Vec<Duration>,
    /// The memory then, in bytes.
    pub(crate) memory: Vec<u64>,
}

/// Starts every server so many times, taking turns.
pub(crate) async fn measure(
    place: &Place,
    peers: &[Peer],
    transports: &[Transport],
    times: usize,
) -> Result<Vec<Start>> {
    let mut starts = Vec::new();
    for transport in transports {
        for peer in peers {
            let (first, again, memory) = (Vec::new(), Vec::new(), Vec::new());
            starts.push(Start { peer: *peer, transport: *transport, first, again, memory });
        }
    }
    for time in 0..times {
        for start in &mut starts {
            let name = format!("start-{}-{}-{time}", start.peer, start.transport);
            start.first.push(once(place, start.peer, start.transport, &name).await?.0);
            let (took, memory) = once(place, start.peer, start.transport, &name).await?;
            start.again.push(took);
            start.memory.push(memory);
        }
    }
    Ok(starts)
}

async fn once(place: &Place, peer: Peer, transport: Transport, name: &str) -> Result<(Duration, u64)> {
    let began = Instant::now();
    let server = Server::start(place, peer, transport, name).await?;
    let mut caller = server.target.connect("step").await?;
    let n = caller::number();
    let request = json!({ "jsonrpc": "2.0", "id": n, "method": "tools/list" });
    let body = caller.send(n, request.to_string()).await?;
    let took = began.elapsed();
    let listed = message(&body, n).context("no answer to tools/list")?;
    let tools = listed["result"]["tools"].as_array().context("no list of tools")?;
    ensure!(tools.iter().any(|tool| tool["name"] == "step"), "{peer} has no tool `step`: {listed}");
    Ok((took, memory(server.id)))
}

/// The memory of a process and of its children, in bytes: what is resident. The pages of a program's file that a child has in
/// common with its parent count once. The echo is the agent's server and not ours.
pub(crate) fn memory(pid: u32) -> u64 {
    let children = cpu::children(pid).into_iter().filter(|child| !cpu::is_called(*child, "echo"));
    let children = children.map(|child| {
        let shared = if program(child) == program(pid) { held(child, "RssFile:").unwrap_or(0) } else { 0 };
        memory(child).saturating_sub(shared)
    });
    held(pid, "VmRSS:").unwrap_or(0) + children.sum::<u64>()
}

fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

fn held(pid: u32, what: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(what))?;
    Some(line.split_ascii_whitespace().next()?.parse::<u64>().ok()? * 1024)
}
