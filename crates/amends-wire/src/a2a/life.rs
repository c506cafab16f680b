//! The life of a task, as the trace of its call tells it.

use amends_core::dispatcher::cancel::CancelReason;
use amends_core::interaction::InteractionKind;
use amends_core::registry::A2a;
use amends_core::{
    AskKind, CallId, Certainty, Event, Fact, Held, Inquiry, Interaction, Outcome, Principal, Refusal, Timestamp,
    ToolName,
};

use super::state::State;

/// The life of a task. A task is the first call of its session, or a move of a walk.
#[derive(Clone, Debug)]
pub struct Life<'a> {
    /// Where it is.
    pub state: State,
    /// Since when.
    pub since: Timestamp,
    /// The place of the event that brought it there.
    pub turn: u64,
    /// The place of the last event that was looked at.
    pub seq: u64,
    /// Whose it is.
    pub principal: &'a Principal,
    /// The door it came through.
    pub door: &'a str,
    /// The context it belongs to, as its agent named it.
    pub context: Option<&'a str>,
    /// The call, or the move.
    pub call: &'a CallId,
    /// What was called.
    pub tool: ToolName,
    /// What a person is asked about it.
    pub asks: Option<&'a Interaction>,
    /// The number of what its upstream asks of the agent.
    pub inquiry: Option<u32>,
    /// Our No.
    pub refusal: Option<&'a Refusal>,
    /// The call that it repeats.
    pub repeats: Option<&'a Held>,
    /// The move of the same walk that it repeats, whose answer it gets.
    pub joined: Option<&'a CallId>,
    /// Whether its answer is that of the call it repeats.
    pub replayed: bool,
    ended: Option<(Outcome, Certainty)>,
    settled: Option<Certainty>,
    begun: bool,
    stopped: bool,
    signs_in: bool,
    made: Option<&'a Inquiry>,
    own: Vec<&'a CallId>,
}

/// The life that a trace tells: of the first call in it, or of the call or move of that id. Nothing where there is none.
pub fn life<'a>(events: impl IntoIterator<Item = &'a Event>, id: Option<&CallId>) -> Option<Life<'a>> {
    let mut opened = None;
    let mut life: Option<Life<'a>> = None;
    for event in events {
        if let Fact::SessionOpened { principal, door, .. } = &event.fact {
            opened = Some((principal, door.as_str()));
        }
        match &mut life {
            Some(life) => life.follow(event),
            None => life = begin(event, opened?, id),
        }
    }
    life
}

fn begin<'a>(event: &'a Event, opened: (&'a Principal, &'a str), id: Option<&CallId>) -> Option<Life<'a>> {
    let (call, tool, gates, repeats) = match &event.fact {
        Fact::CallReceived { received, gates } if received.leg.is_none() => {
            (&received.call, received.tool.clone(), gates, received.repeat_of.as_ref())
        }
        Fact::MoveReceived { taking, gates } => (&taking.id, ToolName::new(taking.action.as_str()), gates, None),
        _ => return None,
    };
    if id.is_some_and(|id| id != call) {
        return None;
    }
    Some(Life {
        state: State::Submitted,
        since: event.at,
        turn: event.seq,
        seq: event.seq,
        principal: opened.0,
        door: opened.1,
        context: gates.context.as_deref(),
        call,
        tool,
        asks: None,
        inquiry: None,
        refusal: None,
        repeats,
        joined: None,
        replayed: false,
        ended: None,
        settled: None,
        begun: false,
        stopped: false,
        signs_in: false,
        made: None,
        own: vec![call],
    })
}

impl<'a> Life<'a> {
    fn follow(&mut self, event: &'a Event) {
        self.look(&event.fact);
        self.seq = event.seq;
        let state = self.now();
        if state != self.state {
            (self.state, self.since, self.turn) = (state, event.at, event.seq);
        }
    }

    fn is_own(&self, call: &CallId) -> bool {
        self.own.contains(&call)
    }

    fn look(&mut self, fact: &'a Fact) {
        match fact {
            Fact::CallReceived { received, .. } if received.leg.as_ref().is_some_and(|leg| leg.of == *self.call) => {
                self.own.push(&received.call);
            }
            Fact::AttemptStarted { attempt, .. } if self.is_own(&attempt.call) => self.begun = true,
            Fact::CancelRequested { call, reason } if call == self.call => {
                self.stopped |= *reason == CancelReason::Asked;
            }
            Fact::InteractionOpened { interaction } if self.is_own(&interaction.call) => self.asks = Some(interaction),
            Fact::InteractionAnswered { interaction, .. }
            | Fact::InteractionLapsed { interaction, .. }
            | Fact::InteractionWithdrawn { interaction } => {
                self.asks = self.asks.filter(|asks| asks.id != *interaction);
            }
            Fact::InquiryMade { attempt, inquiry, .. } if self.is_own(&attempt.call) => self.made = Some(inquiry),
            Fact::AttemptEnded { attempt, report, .. } if self.is_own(&attempt.call) => {
                self.made = report.inquiry.as_deref().or(self.made);
            }
            Fact::InquiryOpened { attempt, inquiry, .. } if self.is_own(&attempt.call) => {
                let asks = self.made.map(|made| made.asks.as_slice()).unwrap_or_default();
                self.signs_in = asks.iter().any(|ask| ask.kind == AskKind::Url);
                self.inquiry = Some(*inquiry);
            }
            Fact::InputsGiven { call, .. } | Fact::InquiryWithdrawn { call, .. } | Fact::InquiryClosed { call, .. }
                if self.is_own(call) =>
            {
                self.inquiry = None;
            }
            Fact::CallRefused { call, refusal } if call == self.call => self.refusal = Some(refusal),
            Fact::MoveRefused { of, refusal } if of == self.call => self.refusal = Some(refusal),
            Fact::MoveJoined { of, first } if of == self.call => self.joined = Some(first),
            Fact::CallEnded { call, outcome, certainty, replayed, .. } if call == self.call => {
                self.ended = Some((*outcome, *certainty));
                self.replayed = *replayed;
            }
            Fact::MoveEnded { of, outcome, certainty, .. } if of == self.call => {
                self.ended = Some((*outcome, *certainty));
            }
            Fact::DoubtResolved { call, certainty, .. } if call == self.call => self.settled = Some(*certainty),
            _ => {}
        }
    }

    fn now(&self) -> State {
        if let Some(refusal) = self.refusal {
            return match refusal.kind.a2a() {
                A2a::AuthRequired => State::AuthRequired,
                A2a::Failed => State::Failed,
                A2a::Canceled => State::Canceled,
                // What goes on or waits elsewhere is told by the call that this one repeats.
                A2a::Rejected | A2a::Working | A2a::InputRequired | A2a::Error(_) => State::Rejected,
            };
        }
        let Some((outcome, certainty)) = self.ended else {
            return match self.asks {
                Some(asks) if signs_in(asks.kind) => State::AuthRequired,
                Some(_) => State::InputRequired,
                None if self.inquiry.is_some() && self.signs_in => State::AuthRequired,
                None if self.inquiry.is_some() => State::InputRequired,
                None if self.begun => State::Working,
                None => State::Submitted,
            };
        };
        if self.settled == Some(Certainty::Processed) {
            return State::Completed;
        }
        // Somebody is asked what became of it, and then it is known.
        if certainty == Certainty::InDoubt && self.settled.is_none() && self.asks.is_some() {
            return State::InputRequired;
        }
        let undone = matches!(certainty, Certainty::NotSent | Certainty::NotProcessed);
        match outcome {
            Outcome::Succeeded | Outcome::SucceededAfterCompensation => State::Completed,
            // Once it was said that it is canceled, nothing of it happens any more; what may have happened is not that.
            Outcome::Cancelled if self.stopped && undone => State::Canceled,
            Outcome::Reversed if self.stopped => State::Canceled,
            Outcome::Refused => State::Rejected,
            Outcome::Escalated if certainty == Certainty::NotSent => State::Rejected,
            Outcome::Cancelled
            | Outcome::Reversed
            | Outcome::Escalated
            | Outcome::Deprecated
            | Outcome::Exhausted
            | Outcome::Unresolved => State::Failed,
        }
    }

    /// Whether somebody wants it stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// How it ended.
    pub fn outcome(&self) -> Option<Outcome> {
        self.ended.map(|(outcome, _)| outcome)
    }
}

/// Whether that question is about somebody who has to sign in.
fn signs_in(kind: InteractionKind) -> bool {
    matches!(kind, InteractionKind::AuthUrl | InteractionKind::AuthDeviceCode)
}
