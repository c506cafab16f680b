//! The bounds of what a dispatcher holds; reaching one is a refusal, never a silent drop.

/// How many calls of one session may be open at once.
pub const OPEN_CALLS_MAX: usize = 1024;
/// How many attempts one call may make, compensations included, whatever its playbook says.
pub const ATTEMPTS_MAX: u32 = 32;
/// How much of the agent's time must be left for an attempt to be worth starting.
pub const ATTEMPT_MS_MIN: u64 = 50;
/// How many status reads one call may make.
pub const STATUS_READS_MAX: u32 = 8;
/// How many steps a ladder may have.
pub const LADDER_STEPS_MAX: usize = 16;
/// The longest wait a playbook may name: a day.
pub const WAIT_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// How much of an upstream's own text is kept and shown.
pub const UPSTREAM_TEXT_MAX: usize = 500;
/// How many nearest names a recovery lists.
pub const NEAREST_MAX: usize = 3;
/// The margin by which a key's window is shortened, on top of how long a request can live.
pub const KEY_MARGIN_MS: u64 = 5_000;
/// How long a sent request is taken to live where the contract does not say.
pub const REQUEST_LIFE_MS: u64 = 60_000;
/// How long a person has for an answer where nothing is said: a day.
pub const ANSWER_WITHIN_MS: u64 = 24 * 60 * 60 * 1000;
/// How long an agent is kept waiting for a person where nothing is said: what most clients bear.
pub const HOLD_MS: u64 = 20 * 1000;
/// For how long a yes that nobody waited for is good where nothing is said: a day.
pub const GRANTED_FOR_MS: u64 = 24 * 60 * 60 * 1000;
/// How many persons may have to say yes to one call.
pub const PERSONS_MAX: u8 = 8;
/// How long an agent has for what an upstream asks of it where nothing is said: five minutes.
pub const INPUT_WITHIN_MS: u64 = 5 * 60 * 1000;
/// How often an upstream may ask something of the agent during one call.
pub const INQUIRIES_MAX: usize = 16;
/// How many questions an upstream may ask at once.
pub const ASKS_MAX: usize = 16;
/// How many pieces of evidence a call may rest on.
pub const EVIDENCE_MAX: usize = 8;
/// How many questions of one session may be open at once.
pub const QUESTIONS_MAX: usize = 1024;
/// How many tools worth calling next an answer names.
pub const FOLLOW_UPS_MAX: usize = 3;
/// How many failed items a partial answer lists.
pub const ITEMS_MAX: usize = 32;
/// How many actions a machine may have.
pub const MACHINE_ACTIONS_MAX: usize = 256;
/// How many states a machine may have.
pub const MACHINE_STATES_MAX: usize = 256;
/// How long the name of a machine or of an action may be, so that a tool's name still fits.
pub const MACHINE_NAME_MAX: usize = 48;
/// How often conditions are asked, over combinations of values, to see whether one can hold.
pub const GUARD_TRIES_MAX: usize = 1024;
/// How many of the values that a guard speaks of are told where it does not hold.
pub const GUARD_VALUES_MAX: usize = 8;
/// How many machines may run in each other.
pub const MACHINE_DEPTH_MAX: usize = 8;
/// How many calls an agent may make in a stage where nothing is said.
pub const STAGE_TURNS: u32 = 8;
/// How many calls an agent may make in a stage at most.
pub const STAGE_TURNS_MAX: u32 = 256;
/// How many calls a stage may make before it acts, and as many after.
pub const STAGE_LEGS_MAX: usize = 8;
/// How long each call that a stage makes last may take, however little time is left: what an agent bears beyond its patience.
pub const EXIT_MS: u64 = 5_000;
/// How many calls of a walk are remembered by name for the day on which it is given up; those before them are counted.
pub const DEEDS_MAX: usize = 256;
/// How many times in which people were waited for are remembered, so that those asked at once are waited for once.
pub const WAITS_MAX: usize = 256;
/// How long an expression may be. The evaluator recurses along it, and a long enough sum would use the stack up.
pub const EXPRESSION_BYTES_MAX: usize = 1024;

/// How long the name of an upstream's work may be.
pub const WORK_NAME_BYTES_MAX: usize = 1_024;
