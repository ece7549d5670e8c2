//! The behaviour of every commit store, and how it handles failures of its server: the same
//! scenarios for all stores, with real servers that the tests start.

mod measure;
mod model;
mod proxy;
mod running;
mod scenarios;
mod separate;
mod support;

use running::{Kind, Running};
use support::TestStore;

/// Defines one test for each scenario, each with its own place.
macro_rules! tests {
    ($place:expr, $($module:ident::$scenario:ident),+ $(,)?) => {
        $(#[test]
        fn $scenario() {
            $crate::conformance::$module::$scenario(&$place);
        })+
    };
}

macro_rules! every_store {
    ($place:expr) => {
        tests!(
            $place,
            scenarios::a_first_claim_begins_at_nothing,
            scenarios::batches_add_up_in_their_order,
            scenarios::a_batch_that_is_sent_again_is_a_duplicate,
            scenarios::a_batch_out_of_order_is_a_gap,
            scenarios::a_batch_with_an_overflow_changes_nothing,
            scenarios::a_fenced_writer_writes_no_more,
            scenarios::an_unclaimed_name_has_no_batches,
            scenarios::numbers_of_64_bits_are_kept_as_they_are,
            scenarios::any_bytes_are_a_key,
            scenarios::any_text_is_a_name_or_is_refused,
            scenarios::a_batch_without_changes_counts,
            scenarios::the_largest_batch_is_taken_and_none_larger,
            scenarios::many_positions_are_loaded_in_the_order_asked_for,
            scenarios::writers_of_different_names_add_up,
            scenarios::one_of_many_concurrent_claims_wins_the_name,
            model::random_scripts_come_out_as_in_the_model,
        );
    };
}

macro_rules! separate_store {
    ($kind:expr) => {
        tests!(
            TestStore::of($kind),
            separate::an_acknowledgement_that_was_lost_is_a_duplicate_later,
            separate::a_claim_whose_answer_was_lost_is_made_again,
            separate::a_server_that_does_not_answer_is_given_up,
            separate::a_connection_that_was_cut_is_made_again,
        );

        #[test]
        fn an_absent_server_is_named_without_secrets() {
            $crate::conformance::separate::an_absent_server_is_named_without_secrets($kind);
        }

        #[test]
        fn what_was_acknowledged_is_there_once_after_kills() {
            $crate::conformance::separate::what_was_acknowledged_is_there_once_after_kills($kind);
        }

        #[test]
        fn a_server_that_has_lost_everything_is_noticed() {
            $crate::conformance::separate::a_server_that_has_lost_everything_is_noticed($kind);
        }
    };
}

mod memory {
    use super::*;
    every_store!(TestStore::memory());
}

mod log {
    use super::*;
    every_store!(TestStore::log());

    #[test]
    fn what_was_acknowledged_is_there_once_after_kills() {
        support::log::survives_kills();
    }

    #[test]
    fn a_folder_that_is_in_use_is_refused() {
        support::log::refuses_a_second_opener();
    }

    #[test]
    fn a_snapshot_replaces_the_log_before_it() {
        support::log::is_cut_by_snapshots();
    }
}

mod redis {
    use super::*;
    every_store!(TestStore::of(Kind::Redis));
    separate_store!(Kind::Redis);
}

mod postgres {
    use super::*;
    every_store!(TestStore::of(Kind::Postgres));
    separate_store!(Kind::Postgres);
}

mod nats {
    use super::*;
    every_store!(TestStore::of(Kind::Nats));
    separate_store!(Kind::Nats);

    #[test]
    fn a_copy_replaces_the_messages_before_it() {
        support::nats::is_cut_by_copies();
    }

    #[test]
    fn a_stream_that_does_not_listen_yet_is_waited_for() {
        support::nats::waits_for_a_stream_that_does_not_listen_yet();
    }

    #[test]
    fn a_server_is_asked_over_tls() {
        support::nats::is_asked_over_tls();
    }
}
