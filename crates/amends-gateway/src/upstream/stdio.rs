//! An upstream that is our child: it is started, greeted, watched, and started again when it dies.

mod greet;
mod group;
pub mod guard;
mod hear;
mod process;
mod questions;
mod restarts;
mod stderr;
mod traffic;
mod unheard;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use amends_core::UpstreamName;
use amends_wire::message;
use tokio::sync::{Notify, mpsc, watch};

use super::exchange::{Exchange, Fault, Reply, Request};
use super::questions::Questions;
use super::{Greeting, Health, Unasked};
use crate::config::{Limits, Reach};
use crate::hub::News;
use stderr::LastWords;
use traffic::{Outgoing, Traffic};
use unheard::Unheard;

/// How long a request waits for a child that is just being started again.
const READY_WAIT: std::time::Duration = std::time::Duration::from_millis(1500);

/// A child process that speaks MCP on its standard input and output.
#[derive(Debug)]
pub struct Child {
    shared: Arc<Shared>,
}

/// What the supervisor and the requests share.
#[derive(Debug)]
struct Shared {
    name: UpstreamName,
    reach: Reach,
    /// Whether we greet it, rather than the agent.
    ours: AtomicBool,
    /// Whether it belongs to one agent, who wrapped it.
    wrapped: bool,
    limits: Limits,
    traffic: Traffic,
    health: watch::Sender<Health>,
    unasked: mpsc::UnboundedSender<(UpstreamName, Unasked)>,
    news: Arc<News>,
    unheard: Unheard,
    /// What it asked and waits for.
    questions: Arc<Questions>,
    last_words: LastWords,
    /// Whether it ends again and again, and is only tried from time to time.
    looping: AtomicBool,
    stop: Notify,
    next: AtomicU64,
}

impl Child {
    /// Starts the child and whoever looks after it.
    pub fn start(
        name: UpstreamName,
        reach: Reach,
        greeting: Greeting,
        limits: Limits,
        unasked: mpsc::UnboundedSender<(UpstreamName, Unasked)>,
        news: Arc<News>,
    ) -> Self {
        // Its one line carries everything it says.
        news.hears(true);
        let shared = Arc::new(Shared {
            name,
            reach,
            ours: AtomicBool::new(greeting == Greeting::Ours),
            wrapped: greeting == Greeting::Forwarded,
            limits,
            traffic: Traffic::default(),
            health: watch::Sender::new(Health::Starting),
            unasked,
            news,
            unheard: Unheard::default(),
            questions: Arc::default(),
            last_words: LastWords::default(),
            looping: AtomicBool::new(false),
            stop: Notify::new(),
            next: AtomicU64::new(1),
        });
        tokio::spawn(process::supervise(shared.clone()));
        Self { shared }
    }

    /// A number for a request.
    pub fn ticket(&self) -> u64 {
        self.shared.next.fetch_add(1, Ordering::Relaxed)
    }

    /// How the child is.
    pub fn health(&self) -> watch::Receiver<Health> {
        self.shared.health.subscribe()
    }

    /// The last lines it wrote to its standard error.
    pub fn last_words(&self) -> Vec<String> {
        self.shared.last_words.lines()
    }

    /// Sends a request once the child is ready, or gives it up unsent.
    pub fn send(&self, ticket: u64, request: Request) -> Exchange {
        let (exchange, end) = Exchange::channel();
        let shared = self.shared.clone();
        let params = request.params.as_deref().map(message::one_line);
        let line = message::request(&ticket.to_string(), &request.method, params.as_deref());
        let out = Outgoing { ticket: Some(ticket), line, send_by: Some(request.send_by), run: request.run };
        shared.traffic.expect(ticket, end.reply, request.asides);
        if request.method == "initialize" && shared.greeting() == Greeting::Forwarded {
            shared.traffic.is_greeting(ticket, request.params.unwrap_or_else(|| "{}".into()));
        }
        tokio::spawn(shared.clone().cancels(ticket, end.abort));
        // A child that runs but is not greeted yet takes no requests.
        let unsent = if shared.is_ready() { shared.traffic.write(out).err() } else { Some(out) };
        match unsent {
            // The run it was decided for is gone, and with it what would have kept a second send from having an effect.
            Some(Outgoing { run: Some(_), .. }) => shared.traffic.answer(ticket, Reply::Fault(Fault::NotWritten)),
            Some(out) => drop(tokio::spawn(shared.write_when_ready(out, request.send_by))),
            None => {}
        }
        exchange
    }

    /// Greets the child ourselves from now on, in its own era; `false` where it takes no greeting.
    pub async fn greet(&self) -> bool {
        self.shared.ours.store(true, Ordering::Release);
        if let Err(reason) = greet::greet(self.shared.clone()).await {
            tracing::warn!(upstream = %self.shared.name, reason, "the upstream did not take our greeting");
            self.shared.health.send_replace(Health::Down { reason });
        }
        self.shared.is_ready()
    }

    /// Whether we greet it, rather than the agent.
    pub fn is_ours(&self) -> bool {
        self.shared.greeting() == Greeting::Ours
    }

    /// Ends the child and whoever looks after it.
    pub async fn stop(&self) {
        self.shared.stop.notify_one();
        let mut health = self.shared.health.subscribe();
        let ended = health.wait_for(|health| matches!(health, Health::Down { reason } if reason == process::STOPPED));
        let _ = tokio::time::timeout(process::LEAVING * 3, ended).await;
    }

    /// Sends a message that has no answer.
    pub fn tell(&self, line: String) {
        // A child that is down, or not greeted yet, has nobody to tell.
        if self.shared.is_ready() {
            let _ = self.shared.traffic.write(Outgoing { ticket: None, line, send_by: None, run: None });
        }
    }

    /// One thing that it said of its own accord has been passed on.
    pub fn passed_on(&self) {
        self.shared.unheard.passed_on();
    }

    /// Waits until all that it said of its own accord so far has been passed on.
    pub async fn caught_up(&self) {
        self.shared.unheard.caught_up().await;
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Whoever looks after it ends it first, and then itself.
        self.shared.stop.notify_one();
    }
}

impl Shared {
    /// A number for a request of our own.
    fn ticket(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Who greets the child.
    fn greeting(&self) -> Greeting {
        if self.ours.load(Ordering::Acquire) { Greeting::Ours } else { Greeting::Forwarded }
    }

    fn is_ready(&self) -> bool {
        matches!(&*self.health.borrow(), Health::Ready { .. })
    }

    async fn write_when_ready(self: Arc<Self>, out: Outgoing, send_by: Instant) {
        let ticket = out.ticket;
        let mut health = self.health.subscribe();
        let ready = health.wait_for(|health| matches!(health, Health::Ready { .. }));
        let wait = READY_WAIT.min(send_by.saturating_duration_since(Instant::now()));
        let is_ready = matches!(tokio::time::timeout(wait, ready).await, Ok(Ok(_)));
        if (!is_ready || self.traffic.write(out).is_err())
            && let Some(ticket) = ticket
        {
            self.traffic.answer(ticket, Reply::Fault(self.absence()));
        }
    }

    /// Why it takes no requests. One that ends again and again is not waited for.
    fn absence(&self) -> Fault {
        match &*self.health.borrow() {
            Health::Down { reason } if self.looping.load(Ordering::Acquire) => {
                Fault::Unstartable { reason: reason.clone() }
            }
            Health::Down { .. } | Health::Starting | Health::Ready { .. } => Fault::ConnectRefused,
        }
    }

    /// Tells the child when a request is no longer wanted. Its answer may still come, and is then a late one.
    async fn cancels(self: Arc<Self>, ticket: u64, abort: tokio::sync::oneshot::Receiver<()>) {
        if abort.await.is_ok() && self.traffic.stop(ticket) {
            let params = format!(r#"{{"requestId":{ticket},"reason":"no longer wanted"}}"#);
            let line = message::notification("notifications/cancelled", Some(&params));
            let _ = self.traffic.write(Outgoing { ticket: None, line, send_by: None, run: None });
        }
    }
}
