//! A Rust function as a tool.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use amends_core::envelope::CHARTER_VERSION;
use amends_core::{Certainty, Code};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::sync::watch;

type Body = dyn Fn(Value, Errand) -> BoxFuture<'static, Result<Value, Failed>> + Send + Sync;

/// A Rust function as a tool. Of a function that says nothing of its effect, the worst is assumed: it writes, and is never run
/// again on its own.
#[derive(Clone)]
pub struct Function {
    name: String,
    description: Option<String>,
    input: Value,
    output: Option<Value>,
    hints: Map<String, Value>,
    body: Arc<Body>,
}

/// What a function is told beside its arguments.
#[derive(Clone, Debug)]
pub struct Errand {
    /// The key of its effect, where its contract says that it honours one: the same again for the same effect.
    pub key: Option<String>,
    /// How long it has, as far as that is known.
    pub left: Option<Duration>,
    /// Whether it should stop.
    pub stopped: Stopped,
}

/// Says when a function should stop, since its time is over or somebody cancelled. It need not: what it did is judged all the
/// same.
#[derive(Clone, Debug)]
pub struct Stopped(watch::Receiver<bool>);

/// How a function failed, and what it knows of its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    code: Code,
    certainty: Certainty,
    message: String,
    retry_after: Option<Duration>,
}

impl Function {
    /// A function of that name, as `A-Za-z0-9_-`. Its arguments are read into what it takes; those that cannot be are the
    /// caller's mistake, and it does not run.
    pub fn new<A, T, F, R>(name: &str, run: F) -> Self
    where
        A: DeserializeOwned + Send,
        T: Serialize,
        F: Fn(A) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, Failed>> + Send + 'static,
    {
        Self::with_errand(name, move |arguments, _| run(arguments))
    }

    /// A function that also wants to know its key, its time, and when it should stop.
    pub fn with_errand<A, T, F, R>(name: &str, run: F) -> Self
    where
        A: DeserializeOwned + Send,
        T: Serialize,
        F: Fn(A, Errand) -> R + Send + Sync + 'static,
        R: Future<Output = Result<T, Failed>> + Send + 'static,
    {
        let body = move |arguments: Value, errand: Errand| {
            let begun = serde_json::from_value(arguments).map(|arguments| run(arguments, errand));
            async move {
                let work = begun.map_err(|error| Failed::untouched(Code::InputInvalid, error.to_string()))?;
                let given = work.await?;
                serde_json::to_value(given).map_err(|error| Failed::done(Code::OutputMalformed, error.to_string()))
            }
            .boxed()
        };
        let input = json!({ "type": "object" });
        Self { name: name.to_owned(), description: None, input, output: None, hints: Map::new(), body: Arc::new(body) }
    }

    /// A function that blocks its thread: it gets one of its own.
    pub fn blocking<A, T, F>(name: &str, run: F) -> Self
    where
        A: DeserializeOwned + Send + 'static,
        T: Serialize + Send + 'static,
        F: Fn(A) -> Result<T, Failed> + Send + Sync + 'static,
    {
        let run = Arc::new(run);
        Self::new(name, move |arguments: A| {
            let run = run.clone();
            async move {
                match tokio::task::spawn_blocking(move || run(arguments)).await {
                    Ok(ended) => ended,
                    Err(broken) if broken.is_panic() => std::panic::resume_unwind(broken.into_panic()),
                    Err(broken) => Err(Failed::in_doubt(Code::ActionError, broken.to_string())),
                }
            }
        })
    }

    /// What it is for, in a sentence for the model.
    pub fn described(mut self, text: &str) -> Self {
        self.description = Some(text.to_owned());
        self
    }

    /// The JSON Schema of its arguments.
    pub fn input(mut self, schema: Value) -> Self {
        self.input = schema;
        self
    }

    /// The JSON Schema of what it gives.
    pub fn output(mut self, schema: Value) -> Self {
        self.output = Some(schema);
        self
    }

    /// It changes nothing.
    pub fn reads(self) -> Self {
        self.hinting("readOnlyHint")
    }

    /// The same arguments lead to the same end, however often it runs.
    pub fn idempotent(self) -> Self {
        self.hinting("idempotentHint")
    }

    fn hinting(mut self, hint: &str) -> Self {
        self.hints.insert(hint.to_owned(), Value::Bool(true));
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How it is listed.
    pub(super) fn entry(&self) -> Value {
        let mut entry = json!({ "name": self.name, "inputSchema": self.input });
        if let Some(description) = &self.description {
            entry["description"] = description.as_str().into();
        }
        if let Some(output) = &self.output {
            entry["outputSchema"] = output.clone();
        }
        if !self.hints.is_empty() {
            entry["annotations"] = Value::Object(self.hints.clone());
        }
        entry
    }

    pub(super) fn run(&self, arguments: Value, errand: Errand) -> BoxFuture<'static, Result<Value, Failed>> {
        (self.body)(arguments, errand)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Function").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Stopped {
    pub(super) fn new(told: watch::Receiver<bool>) -> Self {
        Self(told)
    }

    /// Whether it should stop now.
    pub fn now(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it should stop, perhaps for ever.
    pub async fn wait(&mut self) {
        if self.0.wait_for(|told| *told).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl Failed {
    /// It failed and nothing was done.
    pub fn untouched(code: Code, message: impl Into<String>) -> Self {
        Self::of(code, Certainty::NotProcessed, message)
    }

    /// It did what it should, and something else went wrong.
    pub fn done(code: Code, message: impl Into<String>) -> Self {
        Self::of(code, Certainty::Processed, message)
    }

    /// It failed, and does not know whether it did something.
    pub fn in_doubt(code: Code, message: impl Into<String>) -> Self {
        Self::of(code, Certainty::InDoubt, message)
    }

    /// It may be tried again after that time.
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    fn of(code: Code, certainty: Certainty, message: impl Into<String>) -> Self {
        Self { code, certainty, message: message.into(), retry_after: None }
    }

    /// The same as a gateway behind this one would say it.
    pub(super) fn result(&self) -> String {
        let mut error = json!({
            "kind": self.code.kind(),
            "code": self.code.as_str(),
            "certainty": self.certainty.as_str(),
            "message": self.message,
        });
        if let Some(wait) = self.retry_after {
            error["retry_after_ms"] = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).into();
        }
        let envelope = json!({ "status": "error", "error": error, "charter_version": CHARTER_VERSION });
        let content = json!([{ "type": "text", "text": self.message }]);
        json!({ "isError": true, "content": content, "structuredContent": envelope }).to_string()
    }
}

/// An error that nobody put a word to: it may have happened after an effect.
impl<E: std::error::Error> From<E> for Failed {
    fn from(error: E) -> Self {
        Self::in_doubt(Code::ActionError, error.to_string())
    }
}
