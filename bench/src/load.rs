//! One slice of load: so many callers, until the time or the calls run out.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::cpu::Cpu;
use crate::house::Variant;

/// How many calls one slice makes at most.
const CALLS_MAX: i64 = 20_000;
/// How many calls each caller makes before it counts.
const WARM_CALLS: usize = 3;

/// What one slice showed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slice {
    pub(crate) calls: usize,
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
    pub(crate) per_second: f64,
    /// Of the process under test.
    pub(crate) cpu_us: f64,
    /// Of the echo behind it.
    pub(crate) echo_us: f64,
}

/// Measures one variant with so many callers.
pub(crate) async fn slice(variant: &Variant, callers: usize, lasting: Duration) -> Result<Slice> {
    let tool = variant.way.tool();
    let mut connected = Vec::with_capacity(callers);
    for _ in 0..callers {
        connected.push(variant.target.connect(tool).await?);
    }
    let mut warming = JoinSet::new();
    for mut caller in connected {
        warming.spawn(async move {
            for _ in 0..WARM_CALLS {
                caller.call(tool).await?;
            }
            anyhow::Ok(caller)
        });
    }
    let connected = warming.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;

    let before = (Cpu::settled(variant.subject).await, Cpu::of(variant.echo));
    let left = Arc::new(AtomicI64::new(CALLS_MAX));
    let began = Instant::now();
    let mut running = JoinSet::new();
    for mut caller in connected {
        let left = Arc::clone(&left);
        running.spawn(async move {
            let mut took = Vec::new();
            while left.fetch_sub(1, Ordering::Relaxed) > 0 && began.elapsed() < lasting {
                let sent = Instant::now();
                caller.call(tool).await?;
                took.push(sent.elapsed());
            }
            anyhow::Ok((took, caller))
        });
    }
    let ended = running.join_all().await.into_iter().collect::<Result<Vec<_>>>()?;
    let lasted = began.elapsed();
    // The callers stay connected until everything is counted.
    let (took, _callers): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    let used = (Cpu::settled(variant.subject).await, Cpu::of(variant.echo));

    let mut took = took.concat();
    took.sort_unstable();
    let calls = took.len();
    let per_call = |used: Duration| micros(used) / calls.max(1) as f64;
    Ok(Slice {
        calls,
        p50_us: micros(quantile(&took, 0.5)),
        p99_us: micros(quantile(&took, 0.99)),
        per_second: calls as f64 / lasted.as_secs_f64(),
        cpu_us: per_call(used.0.since(&before.0)),
        echo_us: per_call(used.1.since(&before.1)),
    })
}

pub(crate) fn micros(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}

/// The value below which that share of a sorted list lies; nothing took no time.
pub(crate) fn quantile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}
