//! A proxy made of the Rust SDK's own client and server, with its defaults: `rmcp-proxy UPSTREAM_URL`.

use std::sync::Arc;

use anyhow::Context;
use axum::serve::ListenerExt;
use rmcp::model::{CallToolRequestParams, CallToolResponse, ListToolsResult, PaginatedRequestParams};
use rmcp::model::{ServerCapabilities, ServerConfig};
use rmcp::service::{RequestContext, RunningService, ServiceError};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleClient, RoleServer, ServerHandler, ServiceExt};

/// Passes tools on to one upstream.
#[derive(Clone)]
struct Proxy(Arc<RunningService<RoleClient, ()>>);

impl ServerHandler for Proxy {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.0.list_tools(request).await.map_err(passed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.0.call_tool(request).await.map(CallToolResponse::from).map_err(passed)
    }
}

fn passed(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        other => ErrorData::internal_error(other.to_string(), None),
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let upstream = std::env::args().nth(1).context("usage: rmcp-proxy UPSTREAM_URL")?;
    let client = Arc::new(().serve(StreamableHttpClientTransport::from_uri(upstream)).await?);
    let service = StreamableHttpService::new(
        move || Ok(Proxy(client.clone())),
        LocalSessionManager::default().into(),
        StreamableHttpServerConfig::default(),
    );
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("rmcp-proxy listens on http://{}", listener.local_addr()?);
    // Else the kernel holds the second half of every answer back until the first is acknowledged, 40 ms later.
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("a TCP stream can be told not to wait"));
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}
