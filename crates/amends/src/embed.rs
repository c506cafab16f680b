//! Amends inside a Rust program: its functions are tools, and its calls get envelopes, with the same promises as through any door.

mod agent;
mod told;

use std::sync::Arc;

use amends_core::UpstreamName;
use amends_core::machine::MachineSpec;
use amends_gateway::config::{Reach, Spec, UpstreamConfig, settle};
use amends_gateway::listing::{ListError, refresh_tools};
use amends_gateway::upstream::Greeting;
use amends_gateway::upstream::functions::Functions;
use amends_gateway::{ConfigError, Gateway, StartError, open_ledger};
use thiserror::Error;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

pub use agent::{Agent, Call};
pub use amends_core::{Certainty, Code};
pub use amends_gateway::upstream::functions::{Errand, Failed, Function, Stopped};
pub use told::{Stopping, Told};

/// What the upstream of a program's own functions is called in its configuration.
pub const FUNCTIONS: &str = "functions";

/// A gateway inside this program. When it is dropped, what is open rests on the ledger, and goes on where that is opened again.
///
/// ```
/// use amends::embed::{Amends, Code, Failed, Function};
/// use serde_json::json;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// let amends = Amends::builder()
///     .config("[ledger]\nurl = 'memory:'")
///     .function(
///         Function::new("refund", |refund: serde_json::Value| async move {
///             match refund["order"].as_str() {
///                 Some("A17") => Ok(json!({ "id": "re_1" })),
///                 _ => Err(Failed::untouched(Code::NotFound, "there is no such order")),
///             }
///         })
///         .described("Gives the money back.")
///         .input(json!({ "type": "object", "properties": { "order": { "type": "string" } }, "required": ["order"] })),
///     )
///     .start()
///     .await?;
///
/// let agent = amends.agent("support");
/// let told = agent.call("refund", json!({ "order": "A17" })).await?;
/// assert_eq!(told.data(), Some(&json!({ "id": "re_1" })));
///
/// let told = agent.call("refund", json!({ "order": 17 })).await?;
/// assert_eq!(told.kind(), Some("invalid_argument"));
/// assert_eq!(told.error().unwrap()["certainty"], "not_sent");
/// amends.stop().await;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Amends {
    gateway: Arc<Gateway>,
    follower: JoinHandle<()>,
}

/// What a gateway inside a program is made of.
#[derive(Debug, Default)]
pub struct Builder {
    config: String,
    functions: Vec<Function>,
    machines: Vec<(String, MachineSpec)>,
}

/// Why it did not start.
#[derive(Debug, Error)]
pub enum EmbedError {
    /// The configuration is not one.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Two functions have the same name.
    #[error("there are two functions `{0}`")]
    Twice(String),
    /// Two machines have the same name, of the configuration or of the program.
    #[error("there are two machines `{0}`")]
    TwoMachines(String),
    /// The functions cannot be listed.
    #[error(transparent)]
    List(#[from] ListError),
    /// The gateway did not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

impl Amends {
    /// A gateway with nothing in it yet.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// An agent of that name. What is equal is told by the name: a write that one of them repeats is found, whichever handle it is
    /// called through.
    pub fn agent(&self, name: &str) -> Agent {
        Agent::new(&self.gateway, name)
    }

    /// The gateway itself, to open doors of it, too.
    pub fn gateway(&self) -> &Arc<Gateway> {
        &self.gateway
    }

    /// Waits until no call is open any more, and ends. Whoever cannot wait drops it.
    pub async fn stop(self) {
        self.gateway.quiet().await;
        self.gateway.rest();
        self.gateway.stop_upstreams().await;
        self.gateway.checkpoint().await;
    }
}

impl Drop for Amends {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl Builder {
    /// What a configuration file says: the ledger, contracts by the functions' names, playbooks, machines, other upstreams. Without
    /// one, everything has its default.
    pub fn config(mut self, toml: &str) -> Self {
        self.config = toml.to_owned();
        self
    }

    /// A function that agents may call, and that actions of machines may name.
    pub fn function(mut self, function: Function) -> Self {
        self.functions.push(function);
        self
    }

    /// A machine that was built in Rust.
    pub fn machine(mut self, name: &str, machine: MachineSpec) -> Self {
        self.machines.push((name.to_owned(), machine));
        self
    }

    /// Starts it.
    pub async fn start(self) -> Result<Amends, EmbedError> {
        let mut names: Vec<&str> = self.functions.iter().map(Function::name).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(EmbedError::Twice(twice[0].to_owned()));
        }
        let mut spec = Spec::parse(&self.config, "the program")?;
        for (name, machine) in self.machines {
            if spec.machines.insert(name.clone(), machine).is_some() {
                return Err(EmbedError::TwoMachines(name));
            }
        }
        let mut config = settle(spec)?;
        let functions = UpstreamConfig {
            reach: Reach::Functions(Functions::from_iter(self.functions)),
            // What the program says of its own functions is its operator's word.
            trust_hints: true,
            ..UpstreamConfig::undeclared()
        };
        config.upstreams.insert(UpstreamName::new(FUNCTIONS), functions);
        let ledger = open_ledger(&config.ledger).await?;
        let (unasked_to, unasked) = mpsc::unbounded_channel();
        let gateway = Gateway::start(config, ledger, Greeting::Ours, unasked_to).await?;
        let follower = tokio::spawn(crate::cli::follow(gateway.clone(), unasked));
        let amends = Amends { gateway, follower };
        if let Some(upstream) = amends.gateway.upstreams().get(&UpstreamName::new(FUNCTIONS)) {
            refresh_tools(&amends.gateway, upstream).await?;
        }
        Ok(amends)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/embedding.md")]
struct Page;
