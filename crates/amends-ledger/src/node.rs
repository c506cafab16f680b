//! Processes that drive sessions, and how their death is seen.

use std::fs;
use std::io::ErrorKind;

use amends_core::Timestamp;

use crate::error::Error;

/// A process that drives sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id, new for every process.
    pub id: String,
    /// Where and as what it runs, so that its death can be seen from the same machine.
    pub place: String,
    /// How long a heartbeat counts.
    pub lease_ms: u64,
}

impl Node {
    /// This process, under a new id, with the place where it runs.
    pub fn this_process(lease_ms: u64) -> Result<Self, Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id)
            .map_err(|error| Error::Unavailable { reason: format!("no randomness for a node's id: {error}") })?;
        let place = Place::of_this_process().map(|place| place.to_string()).unwrap_or_default();
        Ok(Self { id: format!("n-{:032x}", u128::from_be_bytes(id)), place, lease_ms })
    }
}

impl Node {
    /// Where letters are posted that are for this node alone, and the places besides.
    pub(crate) fn collects(&self, places: &[String]) -> Vec<String> {
        places.iter().cloned().chain([letters_for(&self.id)]).collect()
    }

    /// The node's place as it stands beside a heartbeat at that time by its clock.
    pub(crate) fn place_at(&self, now: Timestamp) -> String {
        let Some(place) = Place::parse(&self.place) else { return self.place.clone() };
        Place { booted: now.ms().checked_sub(uptime_ms()), ..place }.to_string()
    }
}

/// Where letters are posted that are for the node of that id alone.
pub(crate) fn letters_for(node: &str) -> String {
    format!("node:{node}")
}

/// How long the machine has been up, the time it slept included. No clock that somebody sets changes it.
pub fn uptime_ms() -> u64 {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = rustix::time::ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = rustix::time::ClockId::Monotonic;
    let up = rustix::time::clock_gettime(clock);
    // Neither is ever negative.
    up.tv_sec.unsigned_abs() * 1000 + up.tv_nsec.unsigned_abs() / 1_000_000
}

/// Whether a node is dead: its lease has run out, or it can be seen from here that its process is gone.
pub(crate) fn is_dead(place: &str, lease_until: Timestamp, now: Timestamp) -> bool {
    let Some(place) = Place::parse(place) else { return lease_until <= now };
    // Two processes of one machine may have read two times off a clock that was set in between.
    let now = place.now().unwrap_or(now);
    lease_until <= now || place.is_gone()
}

/// The time by the clock of a node of this machine that lives; nothing where it cannot be told.
pub(crate) fn time_of(place: &str, lease_until: Timestamp) -> Option<Timestamp> {
    let now = Place::parse(place)?.now()?;
    (!is_dead(place, lease_until, now)).then_some(now)
}

/// A process on Linux, named so that no other one ever has the same name: the boot of its machine, the namespace its number
/// counts in, its number, and when it started. Beside a heartbeat it also says when the machine booted, by its clock.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    boot: String,
    namespace: String,
    pid: u32,
    started: u64,
    booted: Option<u64>,
}

impl Place {
    fn of_this_process() -> Option<Self> {
        let pid = std::process::id();
        let started = Seen::at(pid).ok()?.started;
        Some(Self { boot: boot()?, namespace: namespace()?, pid, started, booted: None })
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let place = Self {
            boot: parts.next()?.to_owned(),
            namespace: parts.next()?.to_owned(),
            pid: parts.next()?.parse().ok()?,
            started: parts.next()?.parse().ok()?,
            booted: match parts.next() {
                Some(booted) => Some(booted.parse().ok()?),
                None => None,
            },
        };
        parts.next().is_none().then_some(place)
    }

    /// The time by its clock, where that can be told from here: on the same machine since the same boot.
    fn now(&self) -> Option<Timestamp> {
        let here = boot().as_ref() == Some(&self.boot) && namespace().as_ref() == Some(&self.namespace);
        Some(Timestamp::from_ms(self.booted.filter(|_| here)?.checked_add(uptime_ms())?))
    }

    /// Whether it is certain that the process has ended. From another machine or another namespace nothing is certain.
    fn is_gone(&self) -> bool {
        if boot().as_ref() != Some(&self.boot) || namespace().as_ref() != Some(&self.namespace) {
            return false;
        }
        match Seen::at(self.pid) {
            Ok(seen) => seen.ended || seen.started != self.started,
            // Where other users' processes are hidden, one that cannot be seen may well be alive.
            Err(ErrorKind::NotFound) => Seen::at(1).is_ok(),
            Err(_) => false,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}/{}", self.boot, self.namespace, self.pid, self.started)?;
        self.booted.map_or(Ok(()), |booted| write!(f, "/{booted}"))
    }
}

/// What the system shows of a process.
struct Seen {
    /// Whether it has ended, and only its parent has not looked yet.
    ended: bool,
    /// When it started, in ticks since the boot.
    started: u64,
}

impl Seen {
    fn at(pid: u32) -> Result<Self, ErrorKind> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).map_err(|error| error.kind())?;
        // The second field is the program's name in brackets and may hold anything; the third comes after the last bracket.
        let fields: Vec<&str> = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace().collect();
        let started = fields.get(22 - 3).and_then(|field| field.parse().ok()).ok_or(ErrorKind::InvalidData)?;
        Ok(Self { ended: matches!(fields.first(), Some(&("Z" | "X"))), started })
    }
}

fn boot() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty() && !text.contains('/'))
}

fn namespace() -> Option<String> {
    let link = fs::read_link("/proc/self/ns/pid").ok()?;
    link.to_str().filter(|text| !text.contains('/')).map(str::to_owned)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    const NOW: Timestamp = Timestamp::from_ms(1_000);
    const LATER: Timestamp = Timestamp::from_ms(2_000);

    #[test]
    fn this_process_is_alive_while_its_lease_lasts() {
        let node = Node::this_process(500).unwrap();
        assert_eq!(Place::parse(&node.place).map(|place| place.pid), Some(std::process::id()));
        assert!(!is_dead(&node.place, LATER, NOW));
        assert!(is_dead(&node.place, NOW, NOW));
        assert_ne!(node.id, Node::this_process(500).unwrap().id);
    }

    #[test]
    fn a_process_that_ended_is_dead_at_once_even_before_anybody_waited_for_it() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let started = Seen::at(child.id()).unwrap().started;
        let place = Place { pid: child.id(), started, ..Place::of_this_process().unwrap() }.to_string();
        assert!(!is_dead(&place, LATER, NOW));
        child.kill().unwrap();
        while !Seen::at(child.id()).unwrap().ended {
            std::thread::yield_now();
        }
        assert!(is_dead(&place, LATER, NOW));
        child.wait().unwrap();
        assert!(is_dead(&place, LATER, NOW));
    }

    #[test]
    fn on_one_machine_a_lease_is_measured_by_the_time_the_machine_is_up_whatever_its_clock_was_set_to() {
        let node = Node::this_process(10_000).unwrap();
        let then = Timestamp::from_ms(uptime_ms() + 5_000_000);
        let place = node.place_at(then);
        let (hour_ahead, hour_behind) = (then + 3_600_000, then - 3_600_000);
        assert!(!is_dead(&place, then + 10_000, hour_ahead));
        assert!(is_dead(&place, then, hour_behind));
        assert!(time_of(&place, then + 10_000).is_some_and(|now| now >= then && now < then + 10_000));
        assert_eq!(time_of(&place, then), None);
        assert_eq!(time_of(&node.place, then + 10_000), None);
    }

    #[test]
    fn another_process_under_the_same_number_is_not_the_node() {
        let place = Place::of_this_process().unwrap();
        let other = Place { started: place.started + 1, ..place };
        assert!(is_dead(&other.to_string(), LATER, NOW));
    }

    #[test]
    fn elsewhere_the_lease_has_to_run_out() {
        let here = Place::of_this_process().unwrap();
        let gone = Place { started: here.started + 1, ..here };
        for place in [
            Place { boot: "another".into(), ..gone.clone() }.to_string(),
            Place { namespace: "pid:[1]".into(), ..gone }.to_string(),
            String::new(),
            "a/b/c".into(),
        ] {
            assert!(!is_dead(&place, LATER, NOW), "{place}");
            assert!(is_dead(&place, LATER, LATER), "{place}");
        }
    }
}
