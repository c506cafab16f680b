//! The agent answered what an upstream asked of it.

use crate::attempt::{Payload, Purpose};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::compensate::allowed;
use crate::effect::Effect;
use crate::event::Fact;
use crate::gates::Gates;
use crate::id::{AttemptId, CallId};
use crate::time::Timestamp;

impl Dispatcher {
    /// An upstream that waits is told; one that does not gets the call once more, as a new attempt with the same key.
    pub(super) fn inputs(&mut self, now: Timestamp, gates: &Gates, id: CallId, inquiry: u32, inputs: Payload) {
        let open = self.state.calls.get(&id).and_then(|call| call.open_inquiries().find(|open| open.n == inquiry));
        let Some((n, held)) = open.map(|open| (open.attempt, open.held)) else {
            return self.ignore(now, format!("inquiry {inquiry} of the call `{id}` is not open"));
        };
        self.emit(now, Fact::InputsGiven { call: id.clone(), inquiry, inputs, gates: gates.clone() });
        if held {
            return self.tell(&AttemptId { call: id, n }, inquiry, None);
        }
        let Some(call) = self.state.calls.get(&id) else {
            return;
        };
        if call.open_inquiries().next().is_some() {
            return;
        }
        // What the agent answers is no retry of ours: neither the budget nor a breaker holds it back.
        if !allowed(call, Purpose::Act, gates, now) {
            return self.give_up(now, gates, &id, None);
        }
        self.start(now, gates, &id, Purpose::Act, None);
    }

    /// The call that this one repeats waits for the agent: the same is asked again, of whoever repeats it.
    pub(super) fn asked_again(&mut self, now: Timestamp, attempt: &AttemptId) {
        let refusal = super::reconcile::asked_elsewhere();
        self.emit(now, Fact::CallRefused { call: attempt.call.clone(), refusal: Box::new(refusal) });
        let answer = crate::effect::Answer::Asked { attempt: attempt.clone() };
        let reply = crate::effect::Reply { call: attempt.call.clone(), answer, last: true };
        self.step.effects.push(Effect::Reply(Box::new(reply)));
    }
}
