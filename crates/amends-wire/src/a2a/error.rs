//! What an agent is told where there is no task to tell it with.

use amends_core::Code;
use serde_json::{Map, Value, json};

/// The errors of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is no JSON.
    Parse,
    /// It is no request.
    InvalidRequest,
    /// There is no such method.
    MethodNotFound,
    /// Its parameters are not those of the method.
    InvalidParams,
    /// It is our fault.
    Internal,
    /// There is no such task, or it is another's.
    TaskNotFound,
    /// The task is over.
    TaskNotCancelable,
    /// Nobody is called back from here, or not at that address.
    PushNotSupported,
    /// It is not done here, or not with that task.
    UnsupportedOperation,
    /// That type of content is not taken.
    ContentType,
    /// An agent behind us said what makes no sense.
    InvalidAgentResponse,
    /// There is no other card.
    NoExtendedCard,
    /// An extension is needed.
    ExtensionRequired,
    /// That version is not spoken.
    Version,
}

struct Row {
    trouble: Trouble,
    number: i64,
    reason: &'static str,
    grpc: &'static str,
    http: u16,
    code: Code,
}

macro_rules! rows {
    ($($trouble:ident: $number:literal, $reason:literal, $grpc:literal, $http:literal, $code:ident;)*) => {
        const ROWS: &[Row] = &[$(Row {
            trouble: Trouble::$trouble,
            number: $number,
            reason: $reason,
            grpc: $grpc,
            http: $http,
            code: Code::$code,
        }),*];
    };
}

rows! {
    Parse: -32700, "PARSE_ERROR", "INVALID_ARGUMENT", 400, ShapeInvalid;
    InvalidRequest: -32600, "INVALID_REQUEST", "INVALID_ARGUMENT", 400, ShapeInvalid;
    MethodNotFound: -32601, "METHOD_NOT_FOUND", "NOT_FOUND", 404, MissingCapability;
    InvalidParams: -32602, "INVALID_PARAMS", "INVALID_ARGUMENT", 400, InputInvalid;
    Internal: -32603, "INTERNAL_ERROR", "INTERNAL", 500, StoreUnavailable;
    TaskNotFound: -32001, "TASK_NOT_FOUND", "NOT_FOUND", 404, NotFound;
    TaskNotCancelable: -32002, "TASK_NOT_CANCELABLE", "FAILED_PRECONDITION", 400, AlreadyProcessed;
    PushNotSupported: -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED", "FAILED_PRECONDITION", 400, MissingCapability;
    UnsupportedOperation: -32004, "UNSUPPORTED_OPERATION", "FAILED_PRECONDITION", 400, MissingCapability;
    ContentType: -32005, "CONTENT_TYPE_NOT_SUPPORTED", "INVALID_ARGUMENT", 400, ShapeInvalid;
    InvalidAgentResponse: -32006, "INVALID_AGENT_RESPONSE", "INTERNAL", 500, OutputMalformed;
    NoExtendedCard: -32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", "FAILED_PRECONDITION", 400, MissingCapability;
    ExtensionRequired: -32008, "EXTENSION_SUPPORT_REQUIRED", "FAILED_PRECONDITION", 400, MissingCapability;
    Version: -32009, "VERSION_NOT_SUPPORTED", "FAILED_PRECONDITION", 400, ContractVersionMismatch;
}

impl Trouble {
    fn row(self) -> &'static Row {
        ROWS.iter().find(|row| row.trouble == self).unwrap_or(&ROWS[4])
    }

    /// Its number in JSON-RPC.
    pub fn number(self) -> i64 {
        self.row().number
    }

    /// Its HTTP status.
    pub fn status(self) -> u16 {
        self.row().http
    }

    /// Our own code for it.
    pub fn code(self) -> Code {
        self.row().code
    }

    /// The one with that number and, where it is named, that reason. A number alone says little: other protocols use the same.
    pub fn find(number: i64, reason: Option<&str>) -> Option<Self> {
        let named = ROWS.iter().find(|row| reason == Some(row.reason));
        named.or_else(|| ROWS.iter().find(|row| row.number == number)).map(|row| row.trouble)
    }
}

/// A request that is answered with an error.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// Which.
    pub trouble: Trouble,
    /// What is said of it.
    pub message: String,
    /// What else is known: names and texts.
    pub metadata: Map<String, Value>,
}

impl Refused {
    /// An error with a sentence.
    pub fn of(trouble: Trouble, message: impl Into<String>) -> Self {
        Self { trouble, message: message.into(), metadata: Map::new() }
    }

    /// The same, with something more that is known.
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(name.to_owned(), Value::String(value.into()));
        self
    }

    /// Its details: one google.rpc.ErrorInfo, with our own code among the metadata.
    pub fn details(&self) -> Value {
        let row = self.trouble.row();
        let mut metadata = self.metadata.clone();
        metadata.insert("amendsCode".into(), row.code.as_str().into());
        json!([{
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": row.reason,
            "domain": "a2a-protocol.org",
            "metadata": metadata,
        }])
    }

    /// It as a JSON-RPC error to the request of that id.
    pub fn rpc(&self, id: Option<&str>) -> String {
        crate::message::failure(id, self.trouble.number(), &self.message, Some(&self.details().to_string()))
    }

    /// It as the body of an HTTP answer.
    pub fn http(&self) -> String {
        let row = self.trouble.row();
        let error = json!({ "code": row.http, "status": row.grpc, "message": self.message, "details": self.details() });
        json!({ "error": error }).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_the_same_in_both_bindings() {
        let refused = Refused::of(Trouble::TaskNotFound, "there is no task `x`").with("task", "x");
        let rpc: Value = serde_json::from_str(&refused.rpc(Some("7"))).unwrap();
        assert_eq!((rpc["id"].as_i64(), rpc["error"]["code"].as_i64()), (Some(7), Some(-32001)));
        let http: Value = serde_json::from_str(&refused.http()).unwrap();
        assert_eq!(rpc["error"]["data"], http["error"]["details"]);
        let info = &http["error"]["details"][0];
        assert_eq!(
            (info["reason"].as_str(), info["metadata"]["amendsCode"].as_str()),
            (Some("TASK_NOT_FOUND"), Some("NotFound"))
        );
        assert_eq!((http["error"]["code"].as_u64(), http["error"]["status"].as_str()), (Some(404), Some("NOT_FOUND")));
    }

    #[test]
    fn every_error_has_its_own_number_and_is_found_by_it() {
        for row in ROWS {
            assert_eq!(Trouble::find(row.number, None), Some(row.trouble));
            assert_eq!(Trouble::find(0, Some(row.reason)), Some(row.trouble));
        }
        assert_eq!(Trouble::find(-32050, Some("NONSENSE")), None);
    }
}
