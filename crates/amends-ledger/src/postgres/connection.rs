//! One connection to PostgreSQL, and how it is made.

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::config::SslMode;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Config, Row, Socket, Statement};

use super::schema;
use super::tls::{Demand, Secured, Tls};
use super::trouble::{Trouble, words};
use crate::error::Error;

/// How long a connection may take to be made, for each host that is named.
const CONNECT_MAX: Duration = Duration::from_secs(3);

/// How long PostgreSQL may leave us without an answer: longer than it gives a statement, so that its own words come first.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(12);

/// What is settled for each connection. A process that stalls in the middle of a transaction must not keep the others from
/// the rows it has locked.
const SETTINGS: &str = "
SET statement_timeout = '8s';
SET idle_in_transaction_session_timeout = '3s';
";

/// Where PostgreSQL forgets commits in a crash, it must not do so with ours. Any stricter setting stays.
const DURABLE: &str = "SELECT set_config('synchronous_commit', 'on', false)
    WHERE current_setting('synchronous_commit', true) = 'off'";

/// The line of a connection, which somebody has to keep going.
pub(super) type Line = tokio_postgres::Connection<Socket, Secured>;

/// What is given to a statement.
pub(super) type Value<'a> = &'a (dyn ToSql + Sync);

/// Where the ledger is.
#[derive(Clone, Debug)]
pub(super) struct Target {
    config: Config,
    tls: Tls,
}

impl Target {
    /// Reads an address.
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        // The reason is told without the address, which may hold a password.
        let (url, demand) = Demand::split(url)?;
        let mut config = Config::from_str(&url)
            .map_err(|error| Error::Unavailable { reason: format!("its address cannot be used: {}", words(&error)) })?;
        config.ssl_mode(if demand.is_on() { SslMode::Require } else { SslMode::Disable });
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_MAX);
        }
        if config.get_application_name().is_none() {
            config.application_name("amends");
        }
        config.tcp_user_timeout(SILENCE_MAX).keepalives_idle(SILENCE_MAX);
        Ok(Self { config, tls: Tls::of(&demand)? })
    }

    /// Connects, whatever is there.
    pub(super) async fn connect(&self) -> Result<Connection, Trouble> {
        let connecting = async {
            let (client, connection) = self.open().await?;
            // Its end is seen by whoever uses the client.
            tokio::spawn(async move { drop(connection.await) });
            client.batch_execute(SETTINGS).await?;
            client.query(DURABLE, &[]).await?;
            Ok(Connection { client, statements: Mutex::default() })
        };
        timeout(SILENCE_MAX, connecting).await.unwrap_or(Err(Trouble::Silent))
    }

    /// Connects again to the ledger that has that secret.
    pub(super) async fn reconnect(&self, secret: &[u8; 32]) -> Result<Connection, Trouble> {
        let connection = self.connect().await?;
        let looking = timeout(SILENCE_MAX, schema::same_ledger(&connection, secret));
        looking.await.unwrap_or(Err(Trouble::Silent))?;
        Ok(connection)
    }

    /// Connects, for whoever needs the connection itself.
    pub(super) async fn open(&self) -> Result<(Client, Line), tokio_postgres::Error> {
        self.config.connect(self.tls.clone()).await
    }
}

/// A connection, and the statements that are prepared on it.
pub(super) struct Connection {
    client: Client,
    statements: Mutex<HashMap<&'static str, Statement>>,
}

impl Connection {
    /// Runs statements without parameters.
    pub(super) async fn run(&self, sql: &str) -> Result<(), Trouble> {
        Ok(self.client.batch_execute(sql).await?)
    }

    /// The rows that a statement gives. One that is prepared already is sent when this is first polled.
    pub(super) async fn rows(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Vec<Row>, Trouble> {
        let statement = self.statement(sql).await?;
        Ok(self.client.query(&statement, values).await?)
    }

    /// The one row that a statement gives, if it gives one.
    pub(super) async fn row(&self, sql: &'static str, values: &[Value<'_>]) -> Result<Option<Row>, Trouble> {
        Ok(self.rows(sql, values).await?.into_iter().next())
    }

    /// How many rows a statement changes.
    pub(super) async fn change(&self, sql: &'static str, values: &[Value<'_>]) -> Result<u64, Trouble> {
        let statement = self.statement(sql).await?;
        Ok(self.client.execute(&statement, values).await?)
    }

    /// Changes exactly as many rows as are expected. Otherwise they are not as they were read.
    pub(super) async fn change_exactly(
        &self,
        rows: usize,
        sql: &'static str,
        values: &[Value<'_>],
    ) -> Result<(), Trouble> {
        match rows {
            0 => Ok(()),
            rows if self.change(sql, values).await? == rows as u64 => Ok(()),
            _ => Err(Trouble::Raced),
        }
    }

    /// Prepares statements, so that they can be sent behind each other.
    pub(super) async fn prepare(&self, statements: &[&'static str]) -> Result<(), Trouble> {
        for sql in statements {
            self.statement(sql).await?;
        }
        Ok(())
    }

    async fn statement(&self, sql: &'static str) -> Result<Statement, Trouble> {
        let kept = self.statements.lock().unwrap_or_else(PoisonError::into_inner).get(sql).cloned();
        if let Some(statement) = kept {
            return Ok(statement);
        }
        let statement = self.client.prepare(sql).await?;
        self.statements.lock().unwrap_or_else(PoisonError::into_inner).insert(sql, statement.clone());
        Ok(statement)
    }
}
