//! A lean MCP server: two tools that give back their arguments.

mod http;
mod stdio;

use std::net::SocketAddr;

use anyhow::Result;
use clap::Args;

use crate::rpc::{self, Call, Request};

/// The flags of `amends-bench echo`.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct EchoArgs {
    /// Serve over HTTP.
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Serve on standard input and output.
    #[arg(long)]
    stdio: bool,
}

const TOOLS: &str = concat!(
    r#"{"tools":[{"name":"echo_read","description":"Gives back its arguments.","inputSchema":{"type":"object","#,
    r#""properties":{"n":{"type":"integer"},"text":{"type":"string"}},"required":["n"]}},"#,
    r#"{"name":"echo_write","description":"Gives back its arguments.","inputSchema":{"type":"object","#,
    r#""properties":{"n":{"type":"integer"},"text":{"type":"string"}},"required":["n"]}}]}"#
);

pub(crate) fn run(args: EchoArgs) -> Result<()> {
    match args.http {
        Some(address) => http::serve(address),
        None => stdio::serve(),
    }
}

/// The answer to a message; nothing where none is due.
fn answer(message: &[u8]) -> Option<String> {
    let request: Request<'_> = serde_json::from_slice(message).ok()?;
    let id = request.id?.get();
    Some(match &*request.method {
        "tools/call" => {
            let call: Option<Call<'_>> = request.params.and_then(|params| serde_json::from_str(params.get()).ok());
            let arguments = call.and_then(|call| call.arguments).map_or("{}", |arguments| arguments.get());
            let text = r#"[{"type":"text","text":"done"}]"#;
            rpc::success(id, &format!(r#"{{"content":{text},"structuredContent":{arguments},"isError":false}}"#))
        }
        "tools/list" => rpc::success(id, TOOLS),
        "initialize" => {
            let info = r#"{"name":"echo","version":"0"}"#;
            let version = rpc::VERSION;
            let greeting =
                format!(r#"{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{info}}}"#);
            rpc::success(id, &greeting)
        }
        "ping" => rpc::success(id, "{}"),
        _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32601,"message":"no such method"}}}}"#),
    })
}
