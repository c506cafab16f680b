//! What an upstream asks of the agent: each inquiry is answered once or ends, and the work clock stands meanwhile.

use amends_core::limits::INQUIRIES_MAX;
use amends_core::{Event, Fact, Purpose, Unanswered};

use crate::watch::{Verdicts, Watch};

impl Watch {
    /// No attempt runs out of time, and none begins, while the agent is asked; an answer counts once, and silence only at
    /// its time.
    pub(crate) fn inquiries(&self, event: &Event) -> Verdicts {
        let Some(call) = event.fact.call() else {
            return Ok(());
        };
        let Some(view) = self.calls.get(call) else {
            return Ok(());
        };
        let open = |n: u32| view.inquiries.get(&n).filter(|inquiry| inquiry.open);
        let what = match &event.fact {
            Fact::AttemptTimedOut { attempt, .. } if view.paused.is_some() => {
                format!("{attempt} ran out of time while the agent was asked")
            }
            Fact::AttemptStarted { attempt, purpose: Purpose::Act, .. } if view.paused.is_some() => {
                format!("{attempt} begins while the agent is asked")
            }
            Fact::InquiryOpened { .. } if view.inquiries.len() >= INQUIRIES_MAX => {
                "the agent is asked too often".into()
            }
            Fact::InquiryWithdrawn { inquiry, .. } if open(*inquiry).is_none_or(|asked| asked.held_by.is_none()) => {
                format!("inquiry {inquiry} is taken back and nobody waited for it")
            }
            Fact::InputsGiven { inquiry, .. } if open(*inquiry).is_none() => {
                format!("inquiry {inquiry} is answered and was not open")
            }
            Fact::InquiryClosed { inquiry, why: Unanswered::Lapsed, .. } => match open(*inquiry) {
                None => format!("inquiry {inquiry} lapses and was not open"),
                Some(asked) if asked.returns && event.at < asked.due => {
                    format!("inquiry {inquiry} lapses before its time, and its agent may come back")
                }
                Some(_) => return Ok(()),
            },
            _ => return Ok(()),
        };
        Err(self.broken("inquiries", Some(call.clone()), what))
    }

    /// No inquiry is left open.
    pub(crate) fn every_inquiry_over(&self) -> Verdicts {
        let open = self.calls.iter().find(|(_, view)| view.inquiries.values().any(|inquiry| inquiry.open));
        match open {
            Some((call, _)) => Err(self.broken("inquiries", Some(call.clone()), "the agent is asked for good".into())),
            None => Ok(()),
        }
    }
}
