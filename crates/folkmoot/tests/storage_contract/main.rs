//! The contract of a store, run on each adapter there is.

#[path = "../storage_support/cassandra.rs"]
mod storage_cassandra;
#[path = "../storage_support/postgres.rs"]
mod storage_postgres;
#[path = "../storage_support/mod.rs"]
mod storage_support;

mod again;
mod keeping;
mod kept;
mod suite;
mod three;

/// One test for each promise of the suite and each kind of store, each on a store of its own.
macro_rules! on_each_store {
    ($($part:ident { $($promise:ident),+ $(,)? })+) => {
        mod embedded {
            $($(
                #[tokio::test]
                async fn $promise() {
                    let name = concat!("contract-", stringify!($promise));
                    let directory = crate::storage_support::TestDirectory::new(name);
                    let store = directory.open();
                    crate::$part::$promise(store.clone()).await;
                    store.close().await;
                }
            )+)+
        }
        mod postgres {
            $($(
                #[tokio::test]
                async fn $promise() {
                    let name = concat!("contract-postgres-", stringify!($promise));
                    let directory = crate::storage_support::TestDirectory::new(name);
                    let address = crate::storage_postgres::new_database().await;
                    let store = directory.open_on(&address);
                    crate::$part::$promise(store.clone()).await;
                    store.close().await;
                }
            )+)+
        }
        mod cassandra {
            $($(
                #[tokio::test]
                async fn $promise() {
                    let name = concat!("contract-cassandra-", stringify!($promise));
                    let directory = crate::storage_support::TestDirectory::new(name);
                    let keyspace = crate::again::Keyspace::new().await;
                    let store = directory.open_on(&keyspace.address);
                    crate::$part::$promise(store.clone()).await;
                    store.close().await;
                    crate::again::is_the_same_from_the_log(&directory, &keyspace.address).await;
                }
            )+)+
        }
        mod three_nodes {
            #[tokio::test(flavor = "multi_thread")]
            #[ignore = "three nodes of Cassandra take a minute to start and 2 GB: make test-cassandra3"]
            async fn every_promise_is_kept_and_nothing_is_lost_while_one_of_them_is_killed() {
                let names = [$($(stringify!($promise)),+),+];
                let mut three = crate::three::Three::start(names.len()).await;
                $($(
                    let (directory, keyspace) = three.next(stringify!($promise)).await;
                    let store = directory.open_on(&keyspace);
                    crate::$part::$promise(store.clone()).await;
                    store.close().await;
                    crate::again::is_the_same_from_the_log(&directory, &keyspace).await;
                )+)+
                three.end().await;
            }
        }
    };
}

on_each_store! {
    suite {
        appends_keep_the_order_of_their_calls,
        loading_covers_what_is_in_flight,
        a_stale_epoch_is_known_by_the_snapshot,
        standings_follow_joins_roles_departures_and_bans,
        a_mute_outlasts_a_departure_until_its_end,
        a_use_of_an_invite_is_taken_once_until_its_user_is_in,
        keys_are_found_again_by_their_sender,
        members_come_by_name_and_are_found_by_any_word,
        read_cursors_merge_by_maximum,
        a_room_seen_from_a_member_shows_what_is_new,
        an_archived_room_says_so_and_a_deleted_one_is_gone,
        a_deleted_account_has_no_name_and_cannot_come_back,
        two_people_have_one_direct_room,
        names_are_unique_and_belong_to_one_account,
        what_changed_is_told_once_and_in_order,
        a_file_is_there_once_it_has_arrived,
    }
    keeping {
        what_is_due_follows_from_the_rules,
        a_message_from_a_clock_that_was_ahead_keeps_none_behind_it_for_longer,
        many_messages_from_a_clock_that_was_ahead_keep_none_behind_them_for_longer,
        what_has_expired_is_gone_with_all_that_hung_on_it,
    }
    kept {
        pins_come_last_first_and_go_with_their_messages,
        a_thread_is_a_message_and_all_that_grew_out_of_it,
        saved_messages_are_shown_to_members_and_end_at_a_number,
        a_page_takes_as_many_statements_for_forty_messages_as_for_two,
        of_a_thread_that_is_too_long_its_first_thousand_are_shown,
    }
}
