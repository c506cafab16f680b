//! How people are asked.

use std::collections::BTreeMap;
use std::fmt;

use amends_core::Approval;
use amends_core::gates::{Headless, Patience};
use amends_core::limits::PERSONS_MAX;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::settle::{invalid, ms};
use super::{ConfigError, KeySource, Span};

/// `[people]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PeopleSpec {
    /// How long an agent is kept waiting before it is told that a person is asked. The default is `20s`.
    pub hold: Option<Span>,
    /// How long a person has before a call that waits for a yes is refused, where the tool says nothing. The default is `24h`.
    pub answer_within: Option<Span>,
    /// For how long a yes that nobody waited for is good. The default is `24h`.
    pub granted_for: Option<Span>,
    /// What counts at once where nobody is there to be asked: `approve` or `deny`. The default is to ask.
    pub headless: Option<Headless>,
}

/// `[queues.NAME]`
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QueueSpec {
    /// Whether whoever called may say yes as well, and is asked through its own client. The default is `false`.
    pub requester: bool,
    /// Where its questions are posted to.
    pub webhook: Option<WebhookSpec>,
}

/// `webhook = { url = …, secret = … }`
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookSpec {
    /// The address that questions are posted to.
    pub url: String,
    /// The secret that signs them: `{ env = "…" }` or `{ file = "…" }`.
    pub secret: KeySource,
}

/// `approval = "queue"`, or `approval = { queue = …, persons = … }`
#[derive(Clone, Debug)]
pub struct ApprovalSpec {
    /// The queue that the question is put on.
    pub queue: String,
    /// How many persons must say yes, each under another name: 1 to 8. The default is 1.
    pub persons: Option<u8>,
}

/// The same in full.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FullApprovalSpec {
    queue: String,
    persons: Option<u8>,
}

impl<'de> Deserialize<'de> for ApprovalSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = ApprovalSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a queue, or `{ queue = …, persons = … }`")
            }

            fn visit_str<E: serde::de::Error>(self, queue: &str) -> Result<ApprovalSpec, E> {
                Ok(ApprovalSpec { queue: queue.to_owned(), persons: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<ApprovalSpec, A::Error> {
                let full = FullApprovalSpec::deserialize(MapAccessDeserializer::new(map))?;
                Ok(ApprovalSpec { queue: full.queue, persons: full.persons })
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// How people are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeopleConfig {
    /// How a wait for a yes is spent.
    pub patience: Patience,
    /// What is said of queues, by their names.
    pub queues: BTreeMap<String, QueueConfig>,
}

/// What is said of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueConfig {
    /// Whether whoever called may say yes as well.
    pub requester: bool,
    /// Where its questions are posted to.
    pub webhook: Option<WebhookConfig>,
}

/// Where questions are posted to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {
    /// The address.
    pub url: String,
    /// Where the secret is that signs them.
    pub secret: KeySource,
}

impl PeopleConfig {
    pub(super) fn settle(spec: &PeopleSpec, queues: BTreeMap<String, QueueSpec>) -> Result<Self, ConfigError> {
        let usual = Patience::default();
        let some = |key: &str, span: Option<Span>| match span {
            Some(span) if span.0.is_zero() => Err(invalid(key, "must be longer than no time at all".into())),
            span => Ok(span.map(|span| ms(span.0))),
        };
        let patience = Patience {
            hold_ms: spec.hold.map_or(usual.hold_ms, |span| ms(span.0)),
            answer_within_ms: some("people.answer_within", spec.answer_within)?,
            granted_for_ms: some("people.granted_for", spec.granted_for)?.unwrap_or(usual.granted_for_ms),
            headless: spec.headless,
            goes_on: false,
        };
        let queue = |(name, spec): (String, QueueSpec)| {
            let key = format!("queues.{name}.webhook.url");
            let sound = |url: &str| url.starts_with("http://") || url.starts_with("https://");
            if let Some(webhook) = spec.webhook.as_ref().filter(|webhook| !sound(&webhook.url)) {
                let why = format!("`{}` is not an `http://` or `https://` address", webhook.url);
                return Err(invalid(&key, why));
            }
            let webhook = spec.webhook.map(|webhook| WebhookConfig { url: webhook.url, secret: webhook.secret });
            Ok((name, QueueConfig { requester: spec.requester, webhook }))
        };
        Ok(Self { patience, queues: queues.into_iter().map(queue).collect::<Result<_, _>>()? })
    }

    /// Who must say yes, with what is said of the queue.
    pub fn approval(&self, approval: &Approval) -> Approval {
        let requester = self.queues.get(&approval.queue).is_some_and(|queue| queue.requester);
        Approval { requester_may: approval.requester_may || requester, ..approval.clone() }
    }
}

/// The approval of a tool, as it was written.
pub(super) fn approval(key: &str, spec: &ApprovalSpec) -> Result<Approval, ConfigError> {
    let (queue, persons) = (&spec.queue, spec.persons.unwrap_or(1));
    if queue.is_empty() {
        return Err(invalid(key, "names the queue that the question is put on".into()));
    }
    if !(1..=PERSONS_MAX).contains(&persons) {
        return Err(invalid(key, format!("`persons` is 1 to {PERSONS_MAX}")));
    }
    Ok(Approval { queue: queue.clone(), persons, policy: String::new(), requester_may: false, form: None })
}

#[cfg(test)]
mod tests {
    use crate::config::{Spec, settle};

    fn wrong(text: &str) -> String {
        let settled = Spec::parse(text, "test").and_then(settle);
        settled.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn an_approval_is_a_queue_or_more_and_mistakes_are_named() {
        let text = "[tools.a]\napproval = \"ops\"\n[tools.b]\napproval = { queue = \"ops\", persons = 2 }\n\
                    [queues.ops]\nrequester = true\n[people]\nhold = \"5s\"\nheadless = \"deny\"\n";
        let config = Spec::parse(text, "test").and_then(settle).unwrap();
        let approval = |tool: &str| {
            let contract =
                config.tools[tool].contract(tool, &crate::config::UpstreamConfig::undeclared(), config.repeat_window);
            config.people.approval(contract.unwrap().approval.as_ref().unwrap())
        };
        assert_eq!((approval("a").persons, approval("b").persons), (1, 2));
        assert!(approval("a").requester_may);
        assert_eq!(config.people.patience.hold_ms, 5_000);
        for (text, says) in [
            ("[tools.a]\napproval = \"\"", "tools.a.approval"),
            ("[tools.a]\napproval = { queue = \"ops\", persons = 0 }", "`persons` is 1 to 8"),
            ("[tools.a]\napproval = { queue = \"ops\", person = 2 }", "person"),
            ("[tools.a]\napproval = 3", "the name of a queue"),
            ("[people]\nheadless = \"maybe\"", "maybe"),
            ("[people]\ngranted_for = \"0s\"", "people.granted_for"),
            ("[queues.ops]\nwebhook = { url = \"ftp://x\", secret = { env = \"S\" } }", "queues.ops.webhook.url"),
            ("[queues.ops]\nwebhoook = 1", "webhook"),
        ] {
            assert!(wrong(text).contains(says), "{text}: {}", wrong(text));
        }
    }
}
