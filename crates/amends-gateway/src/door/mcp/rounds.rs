//! What an upstream asks while it answers something that is no tool call. Nothing is written, so nothing is recorded: the
//! questions go to the client, and the request goes out again with its answers.

use amends_core::Principal;
use amends_core::limits::INQUIRIES_MAX;
use amends_wire::mcp::inputs::{responses, with_inputs};
use amends_wire::mcp::{Askable, Era, InputRequired, Question, Returned, era, tasks};
use amends_wire::message::{self, Message};
use amends_wire::object::Object;

use super::{Asked, Client, Outbox};
use crate::clock;
use crate::request_state::RequestState;
use crate::upstream::{Aside, Asking, Reply, RpcFault, Said};

/// For how long a client can come back with its answers.
const COME_BACK_MS: u64 = 5 * 60 * 1000;

/// A request during which the upstream may ask something of the client.
#[derive(Debug)]
pub(super) struct Rounds<'a> {
    client: &'a Client,
    outbox: &'a Outbox,
    method: &'a str,
    era: Era,
    askable: Askable,
    rounds: usize,
    /// The task that is asked about, by the id that the client knows.
    task: Option<String>,
}

/// What is to be done after a reply.
#[derive(Debug)]
pub(super) enum Next {
    /// It is the answer.
    Answer(Reply),
    /// The request goes out again with these parameters.
    Again(String),
}

impl<'a> Rounds<'a> {
    /// Whether an upstream may ask something while it answers that method.
    pub(super) fn allowed(method: &str) -> bool {
        matches!(method, "prompts/get" | "resources/read" | "tasks/result")
    }

    pub(super) fn new(client: &'a Client, asked: &'a Asked, outbox: &'a Outbox) -> Self {
        let said = client.said(asked);
        let askable = Askable::of(said.capabilities.as_deref().map(|raw| raw.get()));
        let task = tasks::id(asked.params.as_deref()).filter(|_| asked.method.starts_with("tasks/"));
        Self { client, outbox, method: &asked.method, era: said.traits.era, askable, rounds: 0, task }
    }

    /// The parameters for the upstream: where the client comes back, with the upstream's own state in place of ours.
    pub(super) fn begin(&self, params: &str) -> Result<String, Reply> {
        let returned = match Returned::read(params) {
            Ok(Some(returned)) => returned,
            Ok(None) => return Ok(params.to_owned()),
            Err(bad) => return Err(error(message::INVALID_PARAMS, bad.to_string())),
        };
        let opened =
            self.client.gateway.seal.open(&returned.state, self.principal(), &self.bound(params), clock::now());
        let config = self.client.gateway.config();
        let found = returned.inputs.map(|inputs| config.pii.shared().arguments.finds(inputs.get())).unwrap_or_default();
        if let Some(category) = found.first() {
            let words = format!("what was given holds `{}`, which may not pass; nothing was sent", category.as_str());
            return Err(error(message::INVALID_PARAMS, words));
        }
        match opened {
            Ok(state) => Ok(with_inputs(params, returned.inputs.map(|inputs| inputs.get()), state.theirs.as_deref())),
            Err(refused) => Err(error(message::INVALID_PARAMS, format!("`requestState` does not count: {refused}"))),
        }
    }

    /// What becomes of a reply: a question goes to the client, over its line or as the answer it comes back from.
    pub(super) async fn next(&mut self, params: &str, reply: Reply) -> Next {
        let Reply::Result(result) = &reply else { return Next::Answer(reply) };
        let text = String::from_utf8_lossy(result);
        let Some(asks) = InputRequired::parse(&text) else {
            let config = self.client.gateway.config();
            // What came of a task is looked at where it is passed on.
            let shown = if self.method == "tasks/result" { None } else { config.pii.shared().shown(&text) };
            return Next::Answer(shown.map_or(reply, |shown| Reply::Result(shown.into())));
        };
        if let Some(missing) = asks.questions.iter().find(|question| !self.askable.takes(question)) {
            return Next::Answer(unaskable(missing));
        }
        if self.era == Era::Modern {
            let state = RequestState {
                principal: self.principal().clone(),
                asked: self.bound(params),
                expires: clock::now() + COME_BACK_MS,
                waiting: None,
                theirs: asks.state.clone(),
            };
            return Next::Answer(Reply::Result(asks.result(&self.client.gateway.seal.close(&state)).into()));
        }
        self.rounds += 1;
        if !self.outbox.is_open() || self.rounds > INQUIRIES_MAX {
            return Next::Answer(error(message::INTERNAL_ERROR, "the upstream asks what cannot be asked here".into()));
        }
        let mut answers = Vec::new();
        for question in &asks.questions {
            match self.ask(question).await {
                Some(answer) => answers.push((question.key.as_str(), answer)),
                None => {
                    return Next::Answer(error(
                        message::INTERNAL_ERROR,
                        "the upstream's question was not answered".into(),
                    ));
                }
            }
        }
        let inputs = responses(answers.iter().map(|(key, answer)| (*key, answer.as_str())));
        Next::Again(with_inputs(params, Some(&inputs), asks.state.as_deref()))
    }

    /// Answers a question of an upstream that waits: by the client, where it has a line and declared that.
    pub(super) async fn hear(&self, aside: Aside) -> Option<Aside> {
        let Aside::Question(Asking { method, params, answer, withdrawn }) = aside else { return Some(aside) };
        let question = Question { key: String::new(), method, params };
        if self.era == Era::Modern || !self.outbox.is_open() || !self.askable.takes(&question) {
            let capability = question.capability();
            let message = format!("the agent of this request cannot be asked for `{capability}`");
            let refused = RpcFault { code: message::METHOD_NOT_FOUND, message, data: None };
            let send_by = std::time::Instant::now() + std::time::Duration::from_secs(10);
            let _ = answer.send(Said { answer: Err(refused), send_by });
            return None;
        }
        let Question { method, params, .. } = question;
        let params = params.map(|params| self.related(&params));
        if let Some(question) = self.outbox.ask(&method, params.as_deref()).await {
            tokio::spawn(super::call::answered(question, Asking { method, params, answer, withdrawn }));
        }
        None
    }

    /// The parameters of a question about a task, with the id by which the client knows that.
    fn related(&self, params: &str) -> String {
        match &self.task {
            Some(given) => tasks::renamed_relation(params, given),
            None => params.to_owned(),
        }
    }

    async fn ask(&self, question: &Question) -> Option<String> {
        let id = format!("{:x}", crate::mint::seed());
        let params = question.for_line(&id);
        let message = self.outbox.ask(&question.method, params.as_deref()).await?.answered(None).await?;
        match Message::parse(&message) {
            Ok(Message::Success { result, .. }) => Some(result.get().to_owned()),
            Ok(Message::Failure { .. }) => question.dismissed().map(str::to_owned),
            Ok(Message::Request { .. } | Message::Notification { .. }) | Err(_) => None,
        }
    }

    fn principal(&self) -> &Principal {
        &self.client.principal
    }

    /// What a state is bound to: the method, and what it is about.
    fn bound(&self, params: &str) -> String {
        let object = Object::parse(params);
        let part = |name: &str| object.as_ref().and_then(|object| object.get(name)).map(|raw| raw.get().to_owned());
        let subject = part("name").or_else(|| part("uri")).unwrap_or_default();
        self.client.gateway.seal.asked(self.method, &subject, &part("arguments").unwrap_or_else(|| "{}".into()))
    }
}

fn unaskable(question: &Question) -> Reply {
    let capability = question.capability();
    let data = serde_json::json!({ "requiredCapabilities": { capability: {} } }).to_string();
    let message = format!("the upstream needs `{capability}` of the client, which it did not declare");
    Reply::Error(RpcFault { code: era::MISSING_CLIENT_CAPABILITY, message, data: Some(data) })
}

fn error(code: i64, message: String) -> Reply {
    Reply::Error(RpcFault { code, message, data: None })
}
