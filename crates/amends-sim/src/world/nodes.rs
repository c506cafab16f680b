//! Nodes: they live, die, stand still, lose sight of the ledger, and take up what others left.

use amends_ledger::Ledger as _;

use crate::catalog::SHOP;
use crate::flaw::Flaw;
use crate::watch::Broken;
use crate::world::{Happening, News, World, record};

/// How often a node says that it lives.
const BEAT_MS: u64 = 1_000;
/// The same when nothing breaks any more.
const CALM_BEAT_MS: u64 = 2_500;
/// By how much the clock is set forward between two nodes: by more than anything settles within, and less than a window within
/// which a repeat finds its answer.
const JUMPS_MS: [u64; 4] = [0, 700, 9_000, 30_000];

impl World {
    /// A node dies: everything it had not appended is gone, and so are its connections.
    pub(crate) fn crash(&mut self, node: usize) {
        if !self.nodes[node].alive {
            return;
        }
        self.watch.note(|| format!("node {node} crashes"));
        let life = self.nodes[node].life;
        if self.flaw == Some(Flaw::QuestionsForgotten) {
            let lost = self.nodes[node].drivers.keys().cloned().collect();
            self.queue.forget(&lost);
        }
        self.nodes[node].alive = false;
        self.nodes[node].drivers.clear();
        self.cut_off(node, life);
        let wait = self.chance.between(50, 6_000);
        self.later(wait, Happening::Start(node));
        if self.troubled() && self.chance.percent(self.fault_percent / 2) {
            let again = wait + self.chance.between(1, 20_000);
            self.later(again, Happening::Crash(node));
        }
    }

    /// Between any two lines of a driver's turn the node may die or stand still, or the upstream restart.
    pub(crate) fn mishap(&mut self, node: usize) {
        if !self.troubled() || !self.chance.percent(self.fault_percent / 20) {
            return;
        }
        let ms = self.chance.between(10, 9_000);
        let what = match self.chance.between(0, 2) {
            0 => Happening::Crash(node),
            1 => Happening::Stall(node, ms),
            _ => Happening::Perish(SHOP),
        };
        self.later(0, what);
    }

    /// A machine starts a new node.
    pub(crate) fn start(&mut self, node: usize) {
        // Somebody may have set the clock while no node ran that had read it.
        if self.nodes[node].life > 0
            && let Some(jumps) = &mut self.jumps
        {
            self.ahead_ms += jumps.pick(&JUMPS_MS);
        }
        let now = self.time();
        let machine = &mut self.nodes[node];
        machine.renew(&self.root, node);
        machine.heartbeat(now);
        self.tell(self.now, node, News::Beat);
    }

    /// A node says that it lives, and takes up the sessions of those that do not.
    pub(crate) fn beat(&mut self, node: usize) -> Result<(), Box<Broken>> {
        let now = self.time();
        self.nodes[node].heartbeat(now);
        let orphans = record::now(self.nodes[node].ledger.orphans(now, 16));
        if let Some(Ok(orphans)) = orphans {
            for session in orphans {
                self.take_up(node, &session)?;
            }
        }
        self.wake(node)?;
        self.doze(node);
        if self.is_over() {
            return Ok(());
        }
        let ms = if self.troubled() { BEAT_MS } else { CALM_BEAT_MS };
        self.tell(self.now + ms, node, News::Beat);
        Ok(())
    }

    pub(crate) fn ledger_away(&mut self, node: usize, ms: u64, in_doubt: bool) {
        let machine = &self.nodes[node];
        if in_doubt {
            machine.ledger.set_in_doubt(true);
        } else {
            machine.ledger.set_unavailable(true);
        }
        let life = machine.life;
        self.watch.note(|| format!("node {node} has no ledger for {ms} ms (in doubt: {in_doubt})"));
        self.later(ms, Happening::Back(node, life));
    }

    pub(crate) fn ledger_back(&mut self, node: usize, life: u32) {
        let machine = &self.nodes[node];
        if machine.life == life {
            machine.ledger.set_unavailable(false);
            machine.ledger.set_in_doubt(false);
        }
    }

    /// Whether nothing is left to happen but heartbeats, and nothing is left to take up.
    fn is_over(&self) -> bool {
        if self.live > 0 || self.queue.waits() {
            return false;
        }
        let open = match record::now(self.root.sessions(usize::MAX)) {
            Some(Ok(rows)) => rows.iter().any(|row| row.open_calls > 0),
            _ => true,
        };
        !open
    }
}
