//! Reading the configuration anew while the gateway runs: on SIGHUP, and when the file is different.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use amends_gateway::reload::Reloaded;
use amends_gateway::{Config, Gateway};
use anyhow::Result;
use tokio::task::JoinHandle;

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Reads a configuration, with what the command line says beside it.
pub(super) type Read = Box<dyn Fn() -> Result<Config> + Send>;

/// Where the configuration of a running gateway comes from.
pub(super) struct Reloads {
    file: PathBuf,
    read: Read,
    watch: bool,
    watched: Watched,
}

impl Reloads {
    /// The file that `read` reads. With `watch` it is looked at, rather than only read on SIGHUP.
    pub(super) fn of(file: PathBuf, watch: bool, read: Read) -> Self {
        let watched = Watched::new(vec![file.clone()]);
        Self { file, read, watch, watched }
    }

    /// What it says now.
    pub(super) fn read(&self) -> Result<Config> {
        (self.read)()
    }

    /// Reads the file anew whenever there is a reason to. From here on a hang-up is one.
    pub(super) fn start(mut self, gateway: Arc<Gateway>) -> JoinHandle<()> {
        let mut hang_ups = hang_ups();
        tokio::spawn(async move {
            self.watched.follow(files(&self.file, &gateway.config()));
            loop {
                tokio::select! {
                    () = hang_ups.next() => {}
                    () = self.watched.changed(), if self.watch => {}
                }
                // From before it is read: what is written meanwhile is seen by the next look.
                self.watched.look();
                self.reload(&gateway);
                self.watched.follow(files(&self.file, &gateway.config()));
            }
        })
    }

    fn reload(&self, gateway: &Arc<Gateway>) {
        let file = self.file.display();
        match self.read().and_then(|config| Ok(gateway.reload(config)?)) {
            Ok(reloaded) => {
                eprintln!("amends: `{file}` was read anew: {reloaded}");
                tell(&reloaded);
            }
            Err(error) => {
                gateway.reload_refused();
                eprintln!("amends: {error:#}; the configuration stays as it was");
                tracing::warn!(%file, "the configuration was refused and stays as it was");
            }
        }
    }
}

fn tell(reloaded: &Reloaded) {
    let Reloaded { started, changed, removed, machines, fixed } = reloaded;
    let count = |names: &[amends_core::UpstreamName]| names.len();
    tracing::info!(
        started = count(started),
        changed = count(changed),
        removed = count(removed),
        machines = machines.len(),
        ?fixed,
        "the configuration was read anew"
    );
}

/// The files that a configuration is made of.
fn files(file: &Path, config: &Config) -> Vec<PathBuf> {
    let release = config.release.as_ref().map(|released| released.rules.source().origin().into());
    let policies = config.policies.iter().flat_map(|policies| policies.texts()).filter_map(|text| text.file.clone());
    std::iter::once(file.to_owned()).chain(release).chain(policies).collect()
}

/// Files, and how they were when they were last looked at.
struct Watched {
    files: Vec<PathBuf>,
    seen: Vec<Option<Seen>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    modified: Option<SystemTime>,
    bytes: Vec<u8>,
}

impl Watched {
    fn new(files: Vec<PathBuf>) -> Self {
        let mut watched = Self { files, seen: Vec::new() };
        watched.look();
        watched
    }

    /// Looks at those files from now on. One that was not looked at before is taken as it is now.
    fn follow(&mut self, files: Vec<PathBuf>) {
        let known = |file: &PathBuf| self.files.iter().position(|known| known == file);
        let seen = files.iter().map(|file| match known(file) {
            Some(at) => self.seen[at].clone(),
            None => Seen::of(file),
        });
        self.seen = seen.collect();
        self.files = files;
    }

    /// Keeps how the files are now.
    fn look(&mut self) {
        self.seen = self.now();
    }

    fn now(&self) -> Vec<Option<Seen>> {
        self.files.iter().map(|file| Seen::of(file)).collect()
    }

    /// Waits until the files are different, and have been so for two looks: one that is being written is not read.
    async fn changed(&self) {
        let mut before: Option<Vec<Option<Seen>>> = None;
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = self.now();
            let other = now.iter().map(text).ne(self.seen.iter().map(text));
            if other && before.as_ref() == Some(&now) {
                return;
            }
            before = Some(now);
        }
    }
}

fn text(seen: &Option<Seen>) -> Option<&[u8]> {
    seen.as_ref().map(|seen| seen.bytes.as_slice())
}

impl Seen {
    /// A file as it is now; nothing where it cannot be read.
    fn of(file: &Path) -> Option<Self> {
        let modified = std::fs::metadata(file).and_then(|data| data.modified()).ok();
        Some(Self { modified, bytes: std::fs::read(file).ok()? })
    }
}

/// The hang-ups that this process is sent.
struct HangUps {
    #[cfg(unix)]
    signals: Option<tokio::signal::unix::Signal>,
}

/// Takes hang-ups from now on; until then one would end the process.
fn hang_ups() -> HangUps {
    HangUps {
        #[cfg(unix)]
        signals: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
    }
}

impl HangUps {
    async fn next(&mut self) {
        #[cfg(unix)]
        if let Some(signals) = &mut self.signals
            && signals.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}
