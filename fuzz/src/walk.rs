//! A walk: any wishes, calls, evaluations and answers at any times, with the same promises checked after each of them.

use amends_core::dispatcher::redecide::redecide;
use amends_core::{Gates, Input, Timestamp};

use crate::bytes::Bytes;
use crate::dispatcher::Session;
use crate::dispatcher::inputs::World;
use crate::dispatcher::walker::Walker;

/// How many inputs one run hands in at most.
const INPUTS_MAX: usize = 96;
/// How much a driver may have to do until everything has ended.
const TURNS_MAX: usize = 2_000;
/// Times after this one are no times of this world: arithmetic stops at the end of the numbers.
const LATEST: Timestamp = Timestamp::from_ms(1 << 60);

/// Reads the bytes as inputs for one session that walks.
pub fn target(data: &[u8]) {
    let mut bytes = Bytes::new(data);
    let mut world = World::new(&mut bytes);
    let mut session = Session::open(bytes.number());
    let begins = Walker::begins(&mut bytes);
    world.walker = Some(Walker::default());
    let begun = session.hand_in(&world, world.now, &Gates::default(), begins);
    world.learn(&begun);
    for _ in 0..INPUTS_MAX {
        if bytes.is_empty() {
            break;
        }
        let (at, gates, input) = world.next(&mut bytes, session.dispatcher.deadline());
        let step = session.hand_in(&world, at, &gates, input);
        world.learn(&step);
        session.ticks_are_in_their_time(world.now, &gates);
    }
    let difference = redecide(&session.events, world.rules_of());
    assert!(matches!(difference, Ok(None)), "decided otherwise: {difference:?}");
    ends(session, world);
}

/// When the session is taken up, nobody wishes for anything any more, and its driver does what is wanted, every move ends.
fn ends(mut session: Session, mut world: World) {
    world.walker = Some(Walker::default());
    let mut input = Some(Input::Resume);
    for _ in 0..TURNS_MAX {
        let next = match input.take() {
            Some(input) => input,
            None => match world.due() {
                Some(input) => input,
                None => match session.dispatcher.deadline().filter(|deadline| deadline.at < LATEST) {
                    Some(deadline) => {
                        world.now = world.now.max(deadline.at);
                        Input::Tick
                    }
                    None => break,
                },
            },
        };
        let step = session.hand_in(&world, world.now, &Gates::default(), next);
        world.learn(&step);
    }
    let open = session.dispatcher.deadline();
    assert!(open.as_ref().is_none_or(|deadline| deadline.at >= LATEST), "open for good: {open:?}");
    assert!(open.is_some() || session.dispatcher.open_calls() == 0, "open without a deadline");
}
