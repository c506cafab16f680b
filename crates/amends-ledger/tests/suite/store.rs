//! PostgreSQL as a store of the suite. Its tests make up their times, so leases go by them.

use amends_ledger::{LeaseClock, Ledger, Node, PostgresLedger};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

use crate::common::Store;
use crate::postgres_server::{Cluster, Database};

pub(crate) struct Postgres(Database);

impl Postgres {
    pub(crate) fn new() -> Self {
        Self(Cluster::shared().database())
    }
}

impl Store for Postgres {
    fn join(&self, node: Node) -> Box<dyn Ledger> {
        let url = self.0.url();
        let opening = PostgresLedger::open_by(&url, node, LeaseClock::Caller);
        Box::new(block_in_place(|| Handle::current().block_on(opening)).unwrap())
    }
}
