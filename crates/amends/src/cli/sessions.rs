//! `amends sessions`: what happened lately.

use std::process::ExitCode;

use amends_core::Tenant;
use amends_ledger::SessionRow;
use anyhow::{Result, bail};
use clap::Args;
use serde_json::json;

use super::ledger::LedgerArgs;
use super::outcome::print;
use super::remote::RemoteArgs;
use super::stamp::utc;

/// The flags of `amends sessions`.
#[derive(Debug, Args)]
pub(super) struct SessionsArgs {
    #[command(flatten)]
    ledger: LedgerArgs,
    #[command(flatten)]
    remote: RemoteArgs,
    /// Only this tenant's.
    #[arg(long, value_name = "NAME")]
    tenant: Option<String>,
    /// How many to list.
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub(super) async fn sessions(args: SessionsArgs) -> Result<ExitCode> {
    let rows = match (args.remote.named(&args.ledger)?, args.tenant) {
        (Some(remote), None) => remote.sessions(args.limit).await?,
        (Some(_), Some(_)) => bail!("a gateway shows what its token may see; leave --tenant out"),
        (None, Some(tenant)) => args.ledger.open().await?.sessions_of(&Tenant::new(tenant), args.limit).await?,
        (None, None) => args.ledger.open().await?.sessions(args.limit).await?,
    };
    if args.json {
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                let mut listed = json!({
                    "session": row.session, "principal": row.principal, "door": row.door, "opened": row.opened,
                    "updated": row.updated, "events": row.events, "open_calls": row.open_calls, "retired": row.cut > 0,
                });
                if let Some(tenant) = row.tenant() {
                    listed["tenant"] = json!(tenant);
                }
                if let Some(machine) = &row.machine {
                    listed["machine"] = json!(machine);
                }
                listed
            })
            .collect();
        print(&serde_json::to_string_pretty(&json!({ "sessions": rows }))?)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(table(&rows).trim_end())?;
    Ok(ExitCode::SUCCESS)
}

/// The sessions, one on each line, with the machines they walk where one does.
fn table(rows: &[SessionRow]) -> String {
    let walks = rows.iter().any(|row| row.machine.is_some());
    let mut text = format!("{:<28}  {:<23}  {:<10}  {:>6}  {:>4}", "SESSION", "LAST EVENT", "DOOR", "EVENTS", "OPEN");
    text.push_str(if walks { "  MACHINE\n" } else { "\n" });
    for row in rows {
        text.push_str(&format!(
            "{:<28}  {:<23}  {:<10}  {:>6}  {:>4}",
            row.session.as_str(),
            utc(row.updated),
            row.door,
            row.events,
            if row.cut > 0 { "gone".to_owned() } else { row.open_calls.to_string() }
        ));
        if let Some(machine) = &row.machine {
            text.push_str(&format!("  {machine}"));
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use amends_core::Timestamp;

    use super::*;

    fn row(machine: Option<&str>) -> SessionRow {
        SessionRow {
            session: "s".into(),
            principal: "local".into(),
            door: "mcp".into(),
            opened: Timestamp::from_ms(0),
            updated: Timestamp::from_ms(0),
            events: 3,
            cut: 0,
            open_calls: 1,
            machine: machine.map(str::to_owned),
        }
    }

    #[test]
    fn machines_have_a_column_where_a_session_walks_one() {
        let plain = table(&[row(None)]);
        assert!(!plain.contains("MACHINE"), "{plain}");
        let walking = table(&[row(None), row(Some("order"))]);
        let lines: Vec<&str> = walking.lines().collect();
        assert!(
            lines[0].ends_with("  MACHINE") && lines[1].ends_with("   1") && lines[2].ends_with("  order"),
            "{walking}"
        );
    }
}
