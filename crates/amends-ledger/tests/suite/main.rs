//! The same tests on every store.

#[path = "../common/mod.rs"]
mod common;
#[path = "../../../../tests/postgres/mod.rs"]
mod postgres_server;

mod appends;
mod claims;
mod inbox;
mod kept;
mod leases;
mod log;
mod pins;
mod questions;
mod retired;
mod reversals;
mod store;
mod tenants;
mod walks;

macro_rules! suite {
    ($($group:ident: $($name:ident),+;)+) => {
        mod memory {
            use crate::common::Memory;

            $($(#[tokio::test]
            async fn $name() {
                crate::$group::$name(Memory::new()).await;
            })+)+
        }
        mod sqlite {
            use crate::common::Sqlite;

            $($(#[tokio::test]
            async fn $name() {
                crate::$group::$name(Sqlite::new()).await;
            })+)+
        }
        mod sealed {
            use crate::common::Sealed;

            $($(#[tokio::test]
            async fn $name() {
                crate::$group::$name(Sealed::new()).await;
            })+)+
        }

        mod postgres {
            use crate::store::Postgres;

            $($(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                crate::$group::$name(Postgres::new()).await;
            })+)+
        }
    };
}

suite! {
    appends:
        a_trace_comes_back_as_it_was_appended,
        an_append_elsewhere_than_at_the_end_is_a_conflict,
        steps_may_be_queued_behind_each_other,
        a_step_behind_a_refused_one_is_a_conflict,
        a_step_that_makes_no_sense_is_not_recorded,
        many_producers_get_whole_chains;
    claims:
        a_held_claim_fails_the_whole_step,
        a_claim_is_settled_and_released_only_by_its_holder,
        an_expired_claim_counts_as_free,
        a_claim_that_needs_not_be_free_is_left_alone,
        a_claim_is_taken_over_only_from_the_named_holder,
        one_step_may_change_a_claim_twice,
        of_two_nodes_one_gets_the_claim,
        a_yes_is_granted_by_its_holder_and_spent_once,
        a_yes_for_good_stands_in_the_way_of_asking_until_it_is_taken_back;
    leases:
        whoever_lost_the_lease_is_fenced,
        a_living_nodes_session_is_not_taken,
        sessions_with_open_calls_of_dead_nodes_are_orphans;
    questions:
        open_questions_are_listed_with_the_one_that_is_due_first_in_front,
        a_question_is_posted_by_one_node_at_a_time_and_not_again_once_it_was_taken,
        the_first_answer_wins_and_a_late_one_is_told_so,
        only_an_option_can_be_answered,
        a_barred_name_can_say_no_and_not_yes,
        a_question_that_is_over_takes_no_answer,
        only_its_own_session_closes_a_question_and_once,
        a_refused_step_asks_and_closes_nothing,
        an_answer_wakes_a_session_that_nobody_drives,
        a_deadline_that_has_passed_wakes_a_session_that_nobody_drives,
        closed_questions_are_kept_for_a_month;
    reversals:
        a_token_is_minted_armed_and_spent,
        two_calls_cannot_redeem_one_token,
        a_call_goes_on_with_the_token_of_the_one_it_repeats,
        a_token_is_redeemed_again_after_it_was_rearmed,
        only_an_armed_token_is_redeemed,
        a_change_to_an_unknown_token_is_left_alone,
        a_token_that_was_redeemed_stays_so,
        what_nobody_can_undo_is_forgotten,
        the_token_minted_last_comes_first;
    inbox:
        a_letter_is_taken_once_and_replied_to_once,
        a_letter_goes_where_somebody_can_act_on_it,
        a_letter_for_the_holder_of_a_session_is_taken_by_no_other_node,
        a_letter_of_a_dead_node_is_taken_by_another,
        letters_are_kept_until_a_day_after_the_reply;
    retired:
        a_retired_session_keeps_its_last_event_and_its_chain,
        what_belongs_to_a_retired_session_goes_with_it,
        a_retirement_must_say_so_and_leave_nothing_open,
        nothing_follows_a_retirement_that_lost_its_lease,
        sessions_are_walked_from_the_oldest_on,
        a_session_comes_whole_into_another_ledger,
        a_retired_session_comes_whole_too,
        what_does_not_fit_together_is_not_taken_in;
    kept:
        what_is_kept_beside_the_events_is_given_back_and_forgotten,
        steps_that_are_written_together_leave_what_they_would_one_by_one,
        what_is_kept_under_a_name_is_replaced_only_by_what_follows_it,
        rules_of_another_ledger_are_kept_under_their_own_digest_alone,
        sessions_are_walked_in_pieces_the_oldest_first,
        the_newest_sessions_come_first,
        a_sweep_drops_what_is_over_and_nothing_else,
        the_secret_is_one_for_all_nodes;
    log:
        a_session_is_unlogged_until_its_head_is_in_the_log,
        the_log_is_extended_only_where_it_ends,
        sessions_are_given_out_as_they_are_stored_in_the_order_of_their_ids,
        an_anchor_proves_what_it_covers,
        every_event_that_is_covered_can_be_proven;
    pins:
        a_pin_is_kept_only_where_it_follows_the_one_before,
        each_place_has_its_own_pins;
    tenants:
        the_sessions_of_a_tenant_are_listed_apart,
        the_sessions_of_a_principal_are_walked_through_in_pieces,
        a_session_stays_its_tenants_after_it_was_retired_and_elsewhere,
        the_questions_of_a_tenant_are_listed_apart;
    walks:
        fields_come_back_in_the_order_of_their_moves,
        a_refused_step_writes_no_fields_and_names_no_machine,
        a_list_says_which_machine_a_session_walks,
        a_retired_walk_loses_its_fields_and_keeps_its_machines_name,
        a_walk_of_another_ledger_comes_without_its_fields,
        a_resting_session_is_taken_from_a_living_node_which_is_fenced,
        a_session_with_something_open_is_not_taken_from_a_living_node,
        two_that_take_a_resting_session_at_once_have_different_epochs;
}
