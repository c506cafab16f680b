//! What each protocol calls a failure or a refusal.

/// How an MCP door says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mcp {
    /// As a result with `isError`, the envelope in it.
    Result,
    /// As the JSON-RPC error of that number, the envelope in its data.
    Error(i32),
}

/// How an A2A door says it: a task in that state with the envelope in its status message, or an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum A2a {
    /// It was tried, and failed or is in doubt.
    Failed,
    /// We said no before anything was sent.
    Rejected,
    /// Somebody stopped it.
    Canceled,
    /// It goes on.
    Working,
    /// A person is asked.
    InputRequired,
    /// Somebody has to sign in.
    AuthRequired,
    /// No task was made: the JSON-RPC error of that number.
    Error(i32),
}

/// How an AG-UI door says it. A run that was begun also has the typed error in the metadata of its `TOOL_CALL_RESULT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgUi {
    /// No run was begun: an HTTP error.
    HttpError,
    /// The `TOOL_CALL_RESULT` says it, and the run stops there.
    ToolResult,
    /// `RUN_ERROR`.
    RunError,
    /// `RUN_FINISHED` with the outcome `interrupt`.
    Interrupt,
    /// `RUN_FINISHED` with the outcome `cancelled`.
    Cancelled,
}

impl Mcp {
    /// What goes over the wire, for a table.
    pub fn words(self) -> String {
        match self {
            Self::Result => "result, isError".to_owned(),
            Self::Error(number) => format!("error {number}"),
        }
    }
}

impl A2a {
    /// What goes over the wire, for a table.
    pub fn words(self) -> String {
        match self {
            Self::Failed => "TASK_STATE_FAILED".to_owned(),
            Self::Rejected => "TASK_STATE_REJECTED".to_owned(),
            Self::Canceled => "TASK_STATE_CANCELED".to_owned(),
            Self::Working => "TASK_STATE_WORKING".to_owned(),
            Self::InputRequired => "TASK_STATE_INPUT_REQUIRED".to_owned(),
            Self::AuthRequired => "TASK_STATE_AUTH_REQUIRED".to_owned(),
            Self::Error(number) => format!("error {number}"),
        }
    }
}

impl AgUi {
    /// What goes over the wire, for a table.
    pub const fn words(self) -> &'static str {
        match self {
            Self::HttpError => "HTTP error",
            Self::ToolResult => "TOOL_CALL_RESULT",
            Self::RunError => "RUN_ERROR",
            Self::Interrupt => "RUN_FINISHED, interrupt",
            Self::Cancelled => "RUN_FINISHED, cancelled",
        }
    }
}
