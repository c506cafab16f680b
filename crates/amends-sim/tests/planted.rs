//! The promises can be broken: each small wrong behaviour that is planted in the world is seen by the watch.

use amends_sim::{APPROVALS_FROM, Flaw, WALKS_FROM, many};

/// How many worlds a flaw may hide in.
const WORLDS: u64 = 6_000;

/// Runs worlds with a flaw until one of them breaks a promise, and says which. Rare ones are looked for where they are
/// known to show.
fn caught(flaw: Flaw) -> &'static str {
    let from = match flaw {
        Flaw::FreshLease => 2_400,
        Flaw::AnyRun => 1_900,
        flaw if flaw.is_of_walks() => WALKS_FROM,
        flaw if flaw.is_of_approvals() => APPROVALS_FROM,
        _ => 0,
    };
    let seeds: Vec<u64> = (from..from + WORLDS).collect();
    match many::run_all(&seeds, Some(flaw)) {
        Ok(_) => panic!("{WORLDS} worlds, and nobody saw {flaw:?}"),
        Err(failed) => failed.broken.invariant,
    }
}

fn check(flaw: Flaw, invariants: &[&str]) {
    let seen = caught(flaw);
    assert!(invariants.contains(&seen), "{flaw:?} was seen as `{seen}`");
}

#[test]
fn sending_before_the_intent_is_durable_is_seen() {
    check(Flaw::SendBeforeAppend, &["intent_first"]);
}

#[test]
fn answering_before_the_result_is_durable_is_seen() {
    check(Flaw::ReplyBeforeAppend, &["result_before_answer"]);
}

#[test]
fn sending_again_inline_is_seen() {
    check(Flaw::ResendInline, &["at_most_once", "truthful"]);
}

#[test]
fn counting_a_negative_status_at_once_is_seen() {
    check(Flaw::NegativeAtOnce, &["at_most_once", "truthful"]);
}

#[test]
fn ignoring_a_held_claim_is_seen() {
    check(Flaw::IgnoreHeld, &["repeats_find_it", "at_most_once"]);
}

#[test]
fn taking_a_conflict_for_a_success_is_seen() {
    check(Flaw::ConflictAsSuccess, &["truthful"]);
}

#[test]
fn taking_an_error_for_proof_that_nothing_was_done_is_seen() {
    check(Flaw::ErrorAsNothingDone, &["truthful", "at_most_once"]);
}

#[test]
fn judging_only_once_is_seen() {
    check(Flaw::JudgeOnce, &["judged_anew"]);
}

#[test]
fn sending_after_the_lease_is_seen() {
    check(Flaw::SendLate, &["intent_first", "at_most_once", "truthful"]);
}

#[test]
fn looking_at_the_lease_only_when_sending_is_seen() {
    check(Flaw::FreshLease, &["intent_first"]);
}

#[test]
fn sending_to_another_run_is_seen() {
    check(Flaw::AnyRun, &["at_most_once"]);
}

#[test]
fn an_upstream_that_forgets_its_keys_is_seen() {
    check(Flaw::KeysForgotten, &["at_most_once", "truthful"]);
}

#[test]
fn undercutting_a_wait_is_seen() {
    check(Flaw::Impatient, &["bounded"]);
}

#[test]
fn a_driver_without_a_timer_is_seen() {
    check(Flaw::NoTimer, &["liveness"]);
}

#[test]
fn minting_a_token_after_the_intent_is_seen() {
    check(Flaw::MintLate, &["one_token_one_undo"]);
}

#[test]
fn redeeming_without_asking_the_ledger_is_seen() {
    check(Flaw::RedeemUnchecked, &["one_token_one_undo"]);
}

#[test]
fn redeeming_after_the_time_is_over_is_seen() {
    check(Flaw::RedeemExpired, &["one_token_one_undo"]);
}

#[test]
fn undoing_while_in_doubt_is_seen() {
    check(Flaw::UndoInDoubt, &["one_token_one_undo"]);
}

#[test]
fn arming_a_spent_token_again_is_seen() {
    check(Flaw::NeverSpent, &["one_token_one_undo"]);
}

#[test]
fn taking_an_answer_twice_is_seen() {
    check(Flaw::AnswerTwice, &["at_most_once", "truthful", "people"]);
}

#[test]
fn letting_a_late_answer_override_the_first_is_seen() {
    check(Flaw::LateAnswerWins, &["people"]);
}

#[test]
fn losing_questions_in_a_crash_is_seen() {
    check(Flaw::QuestionsForgotten, &["people"]);
}

#[test]
fn asking_nobody_is_seen() {
    check(Flaw::NobodyAsked, &["people"]);
}

#[test]
fn taking_silence_for_a_yes_is_seen() {
    check(Flaw::DefaultApprove, &["people"]);
}

#[test]
fn writing_without_claiming_the_object_is_seen() {
    check(Flaw::ObjectUnclaimed, &["one_object_one_write"]);
}

#[test]
fn not_comparing_evidence_is_seen() {
    check(Flaw::EvidenceIgnored, &["evidence_compared"]);
}

#[test]
fn sending_again_what_was_called_stale_twice_is_seen() {
    check(Flaw::ResendStale, &["evidence_compared"]);
}

#[test]
fn sending_again_what_is_in_doubt_is_seen() {
    check(Flaw::RetryInDoubt, &["at_most_once", "truthful", "judged_anew"]);
}

#[test]
fn taking_the_answer_to_an_inquiry_twice_is_seen() {
    check(Flaw::InputsTwice, &["at_most_once", "truthful", "one_token_one_undo"]);
}

#[test]
fn taking_a_question_for_an_answer_is_seen() {
    check(Flaw::QuestionAsSuccess, &["truthful"]);
}

#[test]
fn ending_an_ended_call_by_a_late_result_is_seen() {
    check(Flaw::LateResultCounts, &["one_end"]);
}

#[test]
fn moving_although_nothing_was_done_is_seen() {
    check(Flaw::MoveUnacted, &["act_before_move"]);
}

#[test]
fn undoing_what_was_done_before_a_walk_began_again_is_seen() {
    check(Flaw::UndoEarlier, &["undoes_its_own"]);
}

#[test]
fn not_seeing_that_a_wish_is_a_repeat_is_seen() {
    check(Flaw::RepeatsUnseen, &["one_move_one_wish", "at_most_once"]);
}

#[test]
fn beginning_a_move_beside_another_is_seen() {
    check(Flaw::MoveBeside, &["one_move_at_a_time", "result_before_answer"]);
}

#[test]
fn a_move_by_a_late_result_is_seen() {
    check(Flaw::LateMoves, &["late_moves_nothing"]);
}

#[test]
fn forgetting_what_a_call_of_a_move_is_meant_to_do_is_seen() {
    check(Flaw::LegUnnamed, &["at_most_once"]);
}

#[test]
fn writing_fields_for_a_refused_wish_is_seen() {
    check(Flaw::RefusalWrites, &["refusal_changes_nothing"]);
}

#[test]
fn beginning_elsewhere_than_the_original_was_is_seen() {
    check(Flaw::ForkAstray, &["fork_begins_there"]);
}

#[test]
fn not_comparing_the_number_of_moves_is_seen() {
    check(Flaw::CountIgnored, &["expected_place"]);
}

#[test]
fn recording_another_end_of_a_move_is_seen() {
    check(Flaw::EndMisnamed, &["same_inputs"]);
}

#[test]
fn a_move_to_where_its_machine_does_not_lead_is_seen() {
    check(Flaw::LeadsAstray, &["follows_declaration"]);
}

#[test]
fn sending_what_nobody_said_yes_to_is_seen() {
    check(Flaw::AskedNobody, &["approved_first"]);
}

#[test]
fn spending_a_yes_twice_is_seen() {
    check(Flaw::GrantKept, &["approved_first", "repeats_find_it", "at_most_once"]);
}

#[test]
fn sending_other_arguments_than_were_approved_is_seen() {
    check(Flaw::ArgumentsAlike, &["approved_first"]);
}

#[test]
fn taking_the_yes_of_whoever_called_is_seen() {
    check(Flaw::RequesterApproves, &["people"]);
}
