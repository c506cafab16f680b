//! The demo: a shop that fails on cue, what governs its tools, and three calls that teach something.

use std::net::SocketAddr;
use std::path::Path;

use amends_core::UpstreamName;
use amends_gateway::Config;
use amends_gateway::config::{Reach, Spec, settle};
use anyhow::{Context, Result};

/// The configuration of the demo, which is also an example to copy from.
pub(super) fn config() -> Result<Config> {
    Ok(settle(Spec::parse(include_str!("demo.toml"), "demo.toml")?)?)
}

/// Adds the shop as a child of this very binary.
pub(super) fn add_shop(config: &mut Config, book: &Path, faults: Option<&Path>) -> Result<()> {
    let own = std::env::current_exe().context("cannot find this binary")?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut command = vec![text(&own), "shop".into(), "--book".into(), text(book)];
    match faults {
        Some(script) => command.extend(["--faults".into(), text(script)]),
        None => command.push("--demo".into()),
    }
    let demo = self::config()?;
    let name = UpstreamName::new("shop");
    let mut shop = demo.upstreams.get(&name).cloned().context("the demo has a shop")?;
    shop.reach = Reach::Stdio { command, env: Default::default(), env_pass: Vec::new(), cwd: None, inherit_env: false };
    let reach = shop.reach.clone();
    config.upstreams.entry(name).or_insert(shop).reach = reach;
    for (tool, declared) in demo.tools {
        config.tools.entry(tool).or_insert(declared);
    }
    Ok(())
}

/// Three calls to try, and what each teaches.
pub(super) fn lessons(address: SocketAddr) -> String {
    include_str!("demo.txt").replace("{address}", &address.to_string())
}
