//! The wishes: what the agents want from the shop, and which of them meet a fault. The same for every contender.

use serde_json::{Value, json};

/// One wish in so many meets a fault.
const FAULTY_ONE_IN: usize = 5;

/// How long `late` and `late_effect` take: longer than anybody waits for the shop.
pub(crate) const LATE_MS: u64 = 1500;

/// One of the shop's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tool {
    /// A read.
    GetOrder,
    /// A write whose repeats are one effect, if they carry the same key.
    IssueRefund,
    /// A write without a key.
    ChargeCard,
    /// A write without a key and without a way to look it up.
    SendEmail,
}

/// What the shop does to the requests of one wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What its first request meets, its second, and so on.
    pub(crate) attempts: Vec<&'static str>,
    /// Whether every request meets it, so that no repeat can work.
    pub(crate) lasting: bool,
}

/// Something an agent wants once.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Its name in the arguments, by which its requests and effects are found in the shop's book.
    pub(crate) name: String,
    pub(crate) tool: Tool,
    pub(crate) fault: Option<Fault>,
}

/// A small generator of numbers: the same seed gives the same wishes.
#[derive(Debug)]
struct Dice(u64);

impl Tool {
    const ALL: [Self; 4] = [Self::GetOrder, Self::IssueRefund, Self::ChargeCard, Self::SendEmail];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::GetOrder => "get_order",
            Self::IssueRefund => "issue_refund",
            Self::ChargeCard => "charge_card",
            Self::SendEmail => "send_email",
        }
    }

    pub(crate) fn is_write(self) -> bool {
        self != Self::GetOrder
    }

    /// The argument that holds a wish's name.
    pub(crate) fn named_by(self) -> &'static str {
        if self == Self::SendEmail { "subject" } else { "order" }
    }

    /// The faults that a request of this tool can meet over HTTP. A crash of the shop is not among them: to its callers it is a
    /// lost request or a lost answer, and it would hit whoever else is there.
    fn faults(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::GetOrder => &[
                &["lose_response"],
                &["status_500"],
                &["late"],
                &["rate_limited"],
                &["forbidden"],
                &["status_503"],
                &["plain_error"],
                &["garbage"],
                &["malformed"],
                &["unprocessable"],
            ],
            Self::IssueRefund => &[
                &["lose_response"],
                &["status_500"],
                &["error_after_effect"],
                &["late"],
                &["lose_response", "conflict_done"],
                &["lose_request"],
                &["rate_limited"],
                &["garbage"],
                &["forbidden"],
                &["malformed"],
                &["lose_response", "conflict_in_flight"],
                &["late_effect"],
                &["status_503"],
                &["plain_error"],
                &["precondition"],
                &["unprocessable"],
            ],
            Self::ChargeCard | Self::SendEmail => &[
                &["lose_response"],
                &["status_500"],
                &["error_after_effect"],
                &["late"],
                &["lose_request"],
                &["rate_limited"],
                &["garbage"],
                &["forbidden"],
                &["malformed"],
                &["late_effect"],
                &["status_503"],
                &["plain_error"],
                &["precondition"],
                &["unprocessable"],
            ],
        }
    }
}

impl Wish {
    /// The arguments of its call; with a key where the agent sends one and the tool takes one.
    pub(crate) fn arguments(&self, key: bool) -> Value {
        match self.tool {
            Tool::GetOrder => json!({ "order": self.name }),
            Tool::IssueRefund if key => json!({ "order": self.name, "amount": 5, "idempotency_key": self.key() }),
            Tool::IssueRefund | Tool::ChargeCard => json!({ "order": self.name, "amount": 5 }),
            Tool::SendEmail => json!({ "to": "customer@example.com", "subject": self.name }),
        }
    }

    /// The agent's own key for it.
    pub(crate) fn key(&self) -> String {
        format!("key_{}", self.name)
    }
}

/// The first `calls` wishes of a seed; more of them begin with the same ones.
pub(crate) fn wishes(seed: u64, calls: usize) -> Vec<Wish> {
    let mut dice = Dice(seed);
    let mut dealt = Tool::ALL.map(|tool| dice.below(tool.faults().len()));
    let mut faulty = 0;
    (0..calls)
        .map(|n| {
            if n % FAULTY_ONE_IN == 0 {
                faulty = n + dice.below(FAULTY_ONE_IN);
            }
            let tool = match dice.below(10) {
                0..4 => Tool::GetOrder,
                4..7 => Tool::IssueRefund,
                7..9 => Tool::ChargeCard,
                _ => Tool::SendEmail,
            };
            let twice = dice.below(4) == 0;
            let fault = (n == faulty).then(|| {
                let next = &mut dealt[tool as usize];
                *next += 1;
                fault(tool.faults()[*next % tool.faults().len()], twice)
            });
            Wish { name: format!("ord_w{n:06}"), tool, fault }
        })
        .collect()
}

/// The faults as a script for the shop.
pub(crate) fn script(wishes: &[Wish]) -> String {
    let mut text = String::new();
    for wish in wishes {
        let Some(fault) = &wish.fault else {
            continue;
        };
        let (tool, field, name) = (wish.tool.name(), wish.tool.named_by(), &wish.name);
        text.push_str(&format!(
            "[[fault]]\ntool = \"{tool}\"\nwhen = {{ {field} = \"{name}\" }}\nattempts = {:?}\nrepeat = {}\n\n",
            fault.attempts, fault.lasting
        ));
    }
    text
}

/// A refusal lasts. Of the other faults that come alone, some come twice.
fn fault(attempts: &[&'static str], twice: bool) -> Fault {
    let lasting = matches!(attempts, ["forbidden" | "unprocessable" | "precondition"]);
    let attempts = if twice && !lasting && attempts.len() == 1 { attempts.repeat(2) } else { attempts.to_vec() };
    Fault { attempts, lasting }
}

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_five_is_faulty_and_every_kind_is_there() {
        let wishes = wishes(1, 1000);
        assert_eq!(wishes.iter().filter(|wish| wish.fault.is_some()).count(), 200);
        for tool in Tool::ALL {
            for kinds in tool.faults() {
                let begins = |wish: &&Wish| wish.fault.as_ref().is_some_and(|fault| fault.attempts.starts_with(kinds));
                let met = wishes.iter().filter(|wish| wish.tool == tool).filter(begins).count();
                assert!(met > 0, "{} never meets {kinds:?}", tool.name());
            }
        }
    }

    #[test]
    fn more_calls_of_a_seed_begin_with_the_same_ones() {
        assert_eq!(script(&wishes(7, 100)), script(&wishes(7, 5000)[..100]));
        assert_ne!(script(&wishes(7, 100)), script(&wishes(8, 100)));
    }
}
