//! What agents do: they ask, lose their connection, change their mind, read their answers, and ask again.

use amends_core::attempt::Payload;
use amends_core::claim::ClaimKind;
use amends_core::dispatcher::cancel::CancelReason;
use amends_core::evidence::{Evidence, EvidenceSource};
use amends_core::{Call, CallId, CallKey, Certainty, Claim, Digest, Input, Redeems, Reply, SessionId, ToolName};

use crate::agent::{Agent, Wish};
use crate::catalog::{SHORT_WINDOW_MS, Tool};
use crate::flaw::Flaw;
use crate::tokens::token_of;
use crate::watch::Broken;
use crate::world::turn::NONSENSE;
use crate::world::{APPROVALS_FROM, Asked, BEGIN_MS, Happening, TROUBLE_MS, WALKS_FROM, World};

impl World {
    pub(super) fn plan_wishes(&mut self) {
        let agents = self.chance.between(1, 3) as usize;
        // Few tools and few arguments, so that calls meet.
        let tools: Vec<usize> = (0..3).map(|_| self.chance.between(0, self.tools.len() as u64 - 1) as usize).collect();
        // Where agents walk, few also call.
        let agents = if (WALKS_FROM..APPROVALS_FROM).contains(&self.seed) { agents.min(1) } else { agents };
        for agent in 0..agents {
            self.agents.push(Agent { session: None, at: (0, 0) });
            for _ in 0..self.chance.between(1, 4) {
                let tool = self.chance.pick(&tools);
                let args = if self.chance.percent(3) { NONSENSE } else { self.chance.between(0, 1) };
                // By a baseline, equal calls cannot be told apart; there, only their arguments may name them.
                let keyed = self.chance.percent(35) && !self.tools[tool].by_baseline();
                let key = keyed.then(|| format!("k{}", self.chance.between(0, 3)));
                let slot = self.wishes.len();
                self.wishes.push(Wish {
                    id: slot as u64,
                    agent,
                    tool,
                    args,
                    key,
                    left: self.chance.between(1, 5) as u32,
                    first: None,
                    call: None,
                    undoes: None,
                    patience_ms: self.chance.pick(&[20_000, 20_000, 20_000, 4_000, 900]),
                });
                let at = BEGIN_MS + self.chance.between(0, TROUBLE_MS / 4);
                self.at(at, Happening::Ask(slot));
            }
        }
        // The operator, who only unwinds.
        self.agents.push(Agent { session: None, at: (0, 0) });
    }

    /// An agent asks for something, for the first time or again.
    pub(super) fn ask(&mut self, slot: usize) -> Result<(), Box<Broken>> {
        let agent = self.wishes[slot].agent;
        let Some((node, session)) = self.connection(agent) else {
            self.later(400, Happening::Ask(slot));
            return Ok(());
        };
        let wish = &mut self.wishes[slot];
        if wish.left == 0 {
            return Ok(());
        }
        wish.left -= 1;
        let tool = &self.tools[wish.tool];
        let first = *wish.first.get_or_insert(self.now);
        let short = tool.contract().key.as_ref();
        let short = short.is_some_and(|key| key.window_ms <= SHORT_WINDOW_MS);
        if short && self.now >= first + SHORT_WINDOW_MS {
            // The upstream has forgotten by now, and so may we.
            wish.id = self.order + 1_000_000;
            wish.first = Some(self.now);
        }
        let call = CallId::new(format!("c{:03}", self.asked.len()));
        wish.call = Some(call.clone());
        let asked =
            Asked { slot: Some(slot), wish: wish.id, tool: wish.tool, args: wish.args, undoes: wish.undoes.clone() };
        self.asked.insert(call.clone(), asked);
        self.watch.asks(&call, wish.id);
        let mut input = call_of(&call, tool, wish, self.now + self.ahead_ms, self.flaw, self.asks_first);
        input.redeems = wish.undoes.clone().map(|undone| {
            let token = token_of(&undone);
            let session = self.tokens.session(&token).unwrap_or_else(|| SessionId::new("nowhere"));
            Redeems { token, session, call: undone }
        });
        input.evidence = self.evidence_for(tool);
        let percent = self.fault_percent / 2;
        if self.chance.percent(percent) {
            let ms = self.chance.between(0, 6_000);
            self.later(ms, Happening::Disconnect(agent, session.clone()));
        }
        if self.chance.percent(percent / 2 + 3) {
            let ms = self.chance.between(0, 6_000);
            self.later(ms, Happening::Stop(call, session.clone()));
        }
        self.arrives_at(node, &session, Input::Call(Box::new(input)));
        Ok(())
    }

    /// What an agent says that a call is based on: what it read, what it read long ago, or nothing.
    fn evidence_for(&mut self, tool: &Tool) -> Vec<Evidence> {
        let mut evidence = Vec::new();
        for reading in &tool.contract().evidence {
            let fact = ToolName::new(reading.tool.as_str());
            let (hash, from) = match self.chance.between(0, 4) {
                0 | 1 => (Some(self.book.fact(&fact)), EvidenceSource::Call),
                2 => (Some(Digest::new(format!("{fact}-0"))), EvidenceSource::Session),
                _ => (None, EvidenceSource::Fresh),
            };
            if self.chance.percent(30) {
                let ms = self.chance.between(0, 2_000);
                self.later(ms, Happening::Change(fact.clone()));
            }
            let reference = Digest::new(format!("r-{fact}"));
            evidence.push(Evidence { tool: fact, reference, hash, from });
        }
        evidence
    }

    /// The agent's connection, a new one where it has none. Nothing while no node lives.
    fn connection(&mut self, agent: usize) -> Option<(usize, SessionId)> {
        let (node, life) = self.agents[agent].at;
        if let Some(session) = &self.agents[agent].session
            && self.nodes[node].alive
            && self.nodes[node].life == life
        {
            return Some((node, session.clone()));
        }
        let alive: Vec<usize> = (0..self.nodes.len()).filter(|node| self.nodes[*node].alive).collect();
        if alive.is_empty() {
            return None;
        }
        let node = self.chance.pick(&alive);
        let session = self.open(node);
        self.agents[agent] = Agent { session: Some(session.clone()), at: (node, self.nodes[node].life) };
        Some((node, session))
    }

    /// The agent loses its connection. Its node is told, and it asks again on a new one.
    pub(super) fn disconnect(&mut self, agent: usize, session: &SessionId) -> Result<(), Box<Broken>> {
        if self.agents[agent].session.as_ref() != Some(session) {
            return Ok(());
        }
        let (node, _) = self.agents[agent].at;
        self.agents[agent].session = None;
        self.watch.note(|| format!("{session}: agent disconnects"));
        for slot in self.slots_of(agent) {
            if let Some(call) = self.wishes[slot].call.take() {
                let input = Input::Cancel { call, reason: CancelReason::Disconnected };
                self.arrives_at(node, session, input);
                self.ask_again(slot, 80, 15_000);
            }
        }
        Ok(())
    }

    /// The agent wants a call stopped.
    pub(super) fn stop(&mut self, call: CallId, session: &SessionId) -> Result<(), Box<Broken>> {
        let Some(slot) = self.asked.get(&call).and_then(|asked| asked.slot) else {
            return Ok(());
        };
        let wish = &mut self.wishes[slot];
        let agent = wish.agent;
        if wish.call.as_ref() != Some(&call) || self.agents[agent].session.as_ref() != Some(session) {
            return Ok(());
        }
        let (node, _) = self.agents[agent].at;
        let input = Input::Cancel { call, reason: CancelReason::Asked };
        self.arrives_at(node, session, input);
        Ok(())
    }

    /// Every agent of a node that died finds its connection gone.
    pub(crate) fn cut_off(&mut self, node: usize, life: u32) {
        for agent in 0..self.agents.len() {
            if self.agents[agent].at == (node, life)
                && let Some(session) = self.agents[agent].session.clone()
            {
                self.hang_up(&session);
            }
        }
    }

    /// A session's connection is closed from our side.
    pub(crate) fn hang_up(&mut self, session: &SessionId) {
        let agents = 0..self.agents.len();
        for agent in agents.filter(|a| self.agents[*a].session.as_ref() == Some(session)).collect::<Vec<_>>() {
            self.agents[agent].session = None;
            for slot in self.slots_of(agent) {
                if self.wishes[slot].call.take().is_some() {
                    self.ask_again(slot, 80, 15_000);
                }
            }
        }
    }

    fn slots_of(&self, agent: usize) -> Vec<usize> {
        (0..self.wishes.len()).filter(|slot| self.wishes[*slot].agent == agent).collect()
    }

    fn ask_again(&mut self, slot: usize, percent: u64, within_ms: u64) {
        if self.chance.percent(percent) {
            let ms = self.chance.between(1, within_ms);
            self.later(ms, Happening::Ask(slot));
        }
    }

    /// The driver says no by itself, since it could not record the call.
    pub(crate) fn refuse_directly(&mut self, call: &CallId) {
        self.watch.note(|| format!("{call}: refused, no ledger"));
        if let Some(slot) = self.asked.get(call).and_then(|asked| asked.slot)
            && self.wishes[slot].call.as_ref() == Some(call)
        {
            self.wishes[slot].call = None;
            self.ask_again(slot, 80, 8_000);
        }
    }

    /// An answer is written to the agent's connection, if that is still whole.
    pub(crate) fn receive(&mut self, node: usize, session: &SessionId, reply: &Reply) -> Result<(), Box<Broken>> {
        let Some(slot) = self.asked.get(&reply.call).and_then(|asked| asked.slot) else {
            return Ok(());
        };
        let agent = self.wishes[slot].agent;
        let life = self.nodes[node].life;
        let whole = self.agents[agent].session.as_ref() == Some(session) && self.agents[agent].at == (node, life);
        if !whole || self.wishes[slot].call.as_ref() != Some(&reply.call) {
            return Ok(());
        }
        if self.chance.percent(self.fault_percent / 4) {
            return self.disconnect(agent, session);
        }
        if !reply.last {
            self.wishes[slot].call = None;
            self.ask_again(slot, 50, 30_000);
            return Ok(());
        }
        self.wishes[slot].call = None;
        let delivered = self.chance.percent(75);
        if delivered {
            let call = reply.call.clone();
            self.arrives_at(node, session, Input::Delivery { call });
        }
        self.consider_undoing(agent, session, &reply.call);
        match self.watch.told(&reply.call) {
            Certainty::Processed => {
                self.wishes[slot].id = self.order + 1_000_000;
                self.wishes[slot].first = None;
                self.ask_again(slot, 35, 30_000);
            }
            Certainty::NotSent | Certainty::NotProcessed => self.ask_again(slot, 60, 20_000),
            Certainty::InDoubt => {
                if delivered {
                    self.wishes[slot].id = self.order + 1_000_000;
                    self.wishes[slot].first = None;
                }
                self.ask_again(slot, 40, 30_000);
            }
        }
        Ok(())
    }
}

fn call_of(id: &CallId, tool: &Tool, wish: &Wish, now: u64, flaw: Option<Flaw>, asks_first: bool) -> Call {
    let name = tool.name.as_str();
    let fingerprint = Digest::new(format!("f-{name}-{}", wish.args));
    let claim = |kind, name: String| Claim { name: Digest::new(name), fingerprint: fingerprint.clone(), kind };
    let arguments = match flaw {
        Some(Flaw::ArgumentsAlike) => format!("a-{name}"),
        _ => format!("a-{name}-{}", wish.args),
    };
    let mut claims = match &wish.key {
        _ if tool.effect().is_read() && !(asks_first && tool.persons() > 0) => Vec::new(),
        Some(key) => vec![claim(ClaimKind::Key, format!("k-{key}")), claim(ClaimKind::ArgumentsIfFree, arguments)],
        None => vec![claim(ClaimKind::Arguments, arguments)],
    };
    if let Some(object) = tool.object
        && flaw != Some(Flaw::ObjectUnclaimed)
    {
        claims.push(claim(ClaimKind::Object, format!("o-{object}")));
    }
    Call {
        id: id.clone(),
        tool: tool.name.clone(),
        upstream: tool.upstream.clone(),
        rules: tool.rules.clone(),
        rules_hash: tool.hash.clone(),
        arguments: Payload { digest: fingerprint.clone(), size: 2 },
        principal: "agent".into(),
        deadline: amends_core::Timestamp::from_ms(now + wish.patience_ms),
        key: wish.key.clone().map(CallKey),
        claims,
        effect_key: format!("e-{id}"),
        repeat_of: None,
        evidence: Vec::new(),
        reversal: tool.undo.map(|_| token_of(id)),
        redeems: None,
        view: None,
        leg: None,
    }
}
