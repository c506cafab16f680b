//! A real MCP client: the Rust SDK's own, over a child process.

use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

/// A connected client. Its child ends with it.
#[derive(Debug)]
pub struct Rmcp {
    runtime: Runtime,
    service: Option<RunningService<RoleClient, ()>>,
}

impl Rmcp {
    /// Starts that command and greets it.
    pub fn stdio(command: &[String]) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let service = runtime.block_on(async {
            let (program, arguments) = command.split_first().expect("a command");
            let mut process = tokio::process::Command::new(program);
            process.args(arguments);
            ().serve(TokioChildProcess::new(process).expect("it starts")).await.expect("it is greeted")
        });
        Self { runtime, service: Some(service) }
    }

    /// One tool call from its beginning to its end, in the shape of the other clients' answers.
    pub fn call(&self, tool: &str, args: Value) -> Value {
        let service = self.service.as_ref().expect("it is open");
        let arguments = args.as_object().cloned().expect("an object");
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        match self.runtime.block_on(service.call_tool(params)) {
            Ok(result) => json!({ "ok": true, "result": result }),
            Err(error) => json!({ "ok": false, "error": error.to_string() }),
        }
    }
}

impl Drop for Rmcp {
    fn drop(&mut self) {
        if let Some(service) = self.service.take() {
            let _ = self.runtime.block_on(service.cancel());
        }
    }
}
