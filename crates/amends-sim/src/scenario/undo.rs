//! Undoing what was done in a walk that was given up, newest first.

use amends_core::{Call, CallId, Digest, Gates, Input, Redeems, Timestamp, ToolName};
use serde_json::{Map, Value};

use super::telling::Telling;

/// How long an undoing may take.
const UNDO_MS: u64 = 60_000;

/// The token of something that can be undone.
#[derive(Clone, Debug)]
pub(super) struct Token {
    pub(super) token: Digest,
    /// The write it undoes.
    pub(super) call: CallId,
    pub(super) armed: bool,
    pub(super) minted: Timestamp,
    /// The call that redeems it.
    pub(super) by: Option<CallId>,
}

impl Telling<'_> {
    /// Redeems a token: calls the tool that undoes the write.
    pub(super) fn undo(&mut self, token: Token) {
        let Some(done) = self.calls.get(&token.call).cloned() else { return };
        let Some(reverse) = &done.rules.contract.reverse else { return };
        let result = self.results.get(&token.call).cloned().unwrap_or_default();
        let variables = [("args", &done.args), ("result", &result)];
        let given = reverse.args.iter().filter_map(|(name, it)| Some((name.clone(), it.evaluate(&variables).ok()?)));
        let given: Map<String, Value> = given.collect();
        let tool = ToolName::new(reverse.tool.as_str());
        let id = self.mint("call");
        let deadline = self.now + UNDO_MS;
        let redeems = Redeems { token: token.token, session: "scenario".into(), call: token.call };
        let call = Call { redeems: Some(redeems), ..self.call(id, tool, Value::Object(given), deadline) };
        self.put(&Gates::default(), Input::Call(Box::new(call)));
    }
}
