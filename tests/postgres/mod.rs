//! A PostgreSQL for tests. `test.sh` starts one and names it in `AMENDS_TEST_POSTGRES`; a test that finds none starts its own.

#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/postgres/cluster.sh");

/// A PostgreSQL that runs. One that was started here ends with this, or with the process.
#[derive(Debug)]
pub(crate) struct Cluster {
    folder: PathBuf,
    /// The port on which it is reached over TLS.
    pub(crate) port: Option<u16>,
    holder: Option<Child>,
}

impl Cluster {
    /// The one that is there for all tests, or one of its own.
    pub(crate) fn shared() -> Arc<Self> {
        match std::env::var("AMENDS_TEST_POSTGRES") {
            Ok(url) => {
                let (_, folder) = url.rsplit_once("host=").expect("its address names a folder");
                Arc::new(Self { folder: folder.into(), port: None, holder: None })
            }
            Err(_) => Self::own(),
        }
    }

    /// One of its own, for a test that stops it.
    pub(crate) fn own() -> Arc<Self> {
        Self::held(None)
    }

    /// One of its own that also listens on a port, over TLS with the certificate and the key in those files.
    pub(crate) fn over_tls(certificate: &Path, key: &Path) -> Arc<Self> {
        let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        Self::held(Some((port.expect("a free port").port(), certificate, key)))
    }

    fn held(tls: Option<(u16, &Path, &Path)>) -> Arc<Self> {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("amends-pg-{}-{number}", own_name()));
        let mut script = Command::new(SCRIPT);
        script.arg("hold").arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        if let Some((port, certificate, key)) = tls {
            script.env("TLS_PORT", port.to_string()).env("TLS_CERTIFICATE", certificate).env("TLS_KEY", key);
        }
        let mut holder = script.spawn().expect("the script can be run");
        let out = holder.stdout.take().expect("it is piped");
        let lines = BufReader::new(out).lines().map_while(Result::ok);
        let address = lines.into_iter().find(|line| line.starts_with("postgres://"));
        assert!(address.is_some(), "PostgreSQL did not start");
        Arc::new(Self { folder, port: tls.map(|(port, ..)| port), holder: Some(holder) })
    }

    /// Makes a database, and gives its address.
    pub(crate) fn database(self: &Arc<Self>) -> Database {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let name = format!("t{}_{number}", own_name());
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        Database { cluster: Arc::clone(self), name }
    }

    /// Stops it as a crash would.
    pub(crate) fn crash(&self) {
        let stopped = Command::new(SCRIPT).arg("stop").arg(&self.folder).arg("immediate").status();
        assert!(stopped.is_ok_and(|status| status.success()));
    }

    /// Starts it again.
    pub(crate) fn start_again(&self) {
        let started = Command::new(SCRIPT).arg("start").arg(&self.folder).stdout(Stdio::null()).status();
        assert!(started.is_ok_and(|status| status.success()));
    }

    /// Runs a statement, and gives what it prints.
    pub(crate) fn sql(&self, database: &str, statement: &str) -> String {
        let mut psql = Command::new("psql");
        psql.args(["--no-psqlrc", "--tuples-only", "--no-align", "--quiet", "--set", "ON_ERROR_STOP=1"]);
        psql.args(["--username", "postgres", "--dbname", database, "--command", statement]);
        psql.args(self.port.map(|port| format!("--port={port}")));
        let output = psql.arg("--host").arg(&self.folder).output().expect("psql can be run");
        assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Where it is.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(mut holder) = self.holder.take() {
            // It stops when its standard input ends.
            drop(holder.stdin.take());
            drop(holder.wait());
        }
    }
}

/// A name that no other process has or had: numbers of processes come again within one run of all tests.
fn own_name() -> String {
    static BEGAN: OnceLock<u128> = OnceLock::new();
    let began = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("{}_{:x}", std::process::id(), BEGAN.get_or_init(began))
}

/// A database of one test.
#[derive(Debug)]
pub(crate) struct Database {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) name: String,
}

impl Database {
    pub(crate) fn url(&self) -> String {
        format!("postgres:///{}?user=postgres&host={}", self.name, self.cluster.folder.display())
    }

    pub(crate) fn sql(&self, statement: &str) -> String {
        self.cluster.sql(&self.name, statement)
    }
}
