//! What an auditor can check of a pool with only the revealed secrets.

use std::collections::HashSet;
use tidemark_pool::selector::{AnySelector, SelectorKind, WideTree};
use tidemark_pool::{
    Asked, By, Catalogue, Chain, Commitment, Divergence, Ending, Event, Events, FIRST_DRAW_MAX, Item, Limit,
    Mode, Pool, PoolImage, Refusal, Repeats, Rules, Secret, SoldOut, sealed, unsealed,
};

fn secret(number: u8) -> Secret {
    Secret::new([number; 32])
}

fn pool() -> Pool<WideTree> {
    let items = vec![Item::limited("car", 1, 5), Item::unlimited("mug", 9)];
    let catalogue = Catalogue::new(items).expect("a catalogue");
    Pool::new(&catalogue, secret(1), secret(2))
}

/// Returns a pool whose epoch 0 is over and whose epoch 1 is not, with the published form of its
/// staged events.
fn campaign() -> (Pool<WideTree>, Vec<u8>) {
    let mut pool = pool();
    pool.stage();
    pool.draw_many(30, Repeats::Allowed, &mut Vec::new()).expect("without an end");
    pool.begin_epoch(b"luck", secret(3)).expect("a short seed");
    pool.draw_many(30, Repeats::Allowed, &mut Vec::new()).expect("without an end");
    let staged = pool.staged().to_vec();
    pool.commit();
    (pool, sealed(&staged).expect("events"))
}

/// Returns the pool as published before the first draw, with these secrets.
fn published(known: impl Fn(Commitment) -> Option<Secret>) -> Pool<WideTree> {
    let (mut head, mut items) = (Vec::new(), Vec::new());
    let pool = pool();
    pool.write_sealed_head(&mut head);
    pool.write_items(0..2, &mut items);
    for number in 1..=2 {
        assert!(!head.windows(32).any(|bytes| bytes == [number; 32]), "no secret is in it");
    }
    let mut image = PoolImage::read(&head).expect("a head");
    image.unseal(known);
    image.read_items(&items).expect("items");
    let again = image.finish::<WideTree>().expect("a pool");
    assert_eq!((again.commitment(), again.next_commitment()), (pool.commitment(), pool.next_commitment()));
    assert_eq!(again.origin(), pool.origin(), "what the chain begins with is known without secrets");
    again
}

/// Returns the secrets with these numbers, by their commitments.
fn knows(numbers: &[u8]) -> impl Fn(Commitment) -> Option<Secret> {
    let secrets: Vec<Secret> = numbers.iter().map(|&number| secret(number)).collect();
    move |commitment| secrets.iter().find(|secret| secret.commitment() == commitment).cloned()
}

#[test]
fn what_is_published_is_enough_to_follow_and_secrets_to_check() {
    let (pool, events) = campaign();
    for known in [&[][..], &[1], &[1, 2], &[1, 2, 3]] {
        let mut outsider = published(knows(known));
        for event in Events::new(&events) {
            let event = unsealed(event.expect("an event"), knows(known));
            outsider.check(0, &event).expect("it was so");
        }
        assert!(outsider.urn().entries().eq(pool.urn().entries()));
        assert_eq!(outsider.next_commitment(), pool.next_commitment());
    }
}

#[test]
fn another_item_is_found_once_the_secret_is_known() {
    let other = |event: Event<'_>| match event {
        Event::Drew(Some(item)) => Event::Drew(Some(1 - item)),
        _ => panic!("draws come first"),
    };
    let (_, events) = campaign();
    let first = Events::new(&events).next().expect("a draw").expect("an event");
    let changed = other(first);
    published(knows(&[])).check(0, &changed).expect("it could have been");
    let found = published(knows(&[1])).check(0, &changed).unwrap_err();
    assert!(matches!(found, Divergence::OtherItem { draw: 0, .. }), "{found}");
    // The pool ignores a secret that has another commitment.
    published(knows(&[9])).check(0, &changed).expect("unknown");
}

#[test]
fn a_reservation_does_not_expire_before_its_time() {
    let ended = Event::Ended { number: 0, how: Ending::Expired };
    let reserved = || {
        let mut pool = pool();
        pool.reserve(1, Repeats::Allowed, 50).expect("without an end");
        pool
    };
    let found = reserved().check(49, &ended).unwrap_err();
    assert_eq!(found, Divergence::TooEarly { number: 0, until_us: 50, time_us: 49 });
    reserved().check(50, &ended).expect("its time is over");
    // After the deadline, a reservation can be neither confirmed nor cancelled.
    for how in [Ending::Confirmed, Ending::Cancelled] {
        let ended = Event::Ended { number: 0, how };
        let found = reserved().check(50, &ended).unwrap_err();
        assert_eq!(found, Divergence::TooLate { number: 0, how, until_us: 50, time_us: 50 });
        reserved().check(49, &ended).expect("it is open");
    }
    let mut twin = reserved();
    let draw = Event::Drew(twin.draw().expect("without an end").item);
    let found = reserved().check(50, &draw).unwrap_err();
    assert_eq!(found, Divergence::NotEnded { draw: 1, number: 0, until_us: 50, time_us: 50 });
    reserved().check(49, &draw).expect("nothing is over");
}

#[test]
fn what_users_do_counts_when_they_do_it() {
    let day = Limit { max: 1, per_ms: Some(1000), wins_of: None };
    let limited = || {
        let rules = Rules::new(vec![day.clone()], Vec::new()).expect("they are sound");
        let items = vec![Item::unlimited("mug", 1)];
        let catalogue = Catalogue::new(items).expect("a catalogue").ruled(rules).expect("no items are named");
        Pool::<WideTree>::new(&catalogue, secret(1), secret(2))
    };
    let by = |now_ms| By { user: Some(b"mira"), request: None, now_ms };
    let asked = |now_ms| {
        let (by, items) = (by(now_ms), vec![Some(0)]);
        Event::Asked(Box::new(Asked { by, items, repeats: Repeats::Allowed, until_us: None }))
    };
    let mut pool = limited();
    pool.check(5_000, &asked(5)).expect("it was so");
    // A log cannot evade a limit by stating another day.
    let found = pool.check(6_000, &asked(1_006)).unwrap_err();
    assert_eq!(found, Divergence::OtherTime { draws: 1, said_ms: 1_006, time_us: 6_000 });
    let returned = Event::GivenBackBy { user: b"mira", now_ms: 0, item: 0, count: 1 };
    let found = pool.check(7_000, &returned).unwrap_err();
    assert_eq!(found, Divergence::OtherTime { draws: 1, said_ms: 0, time_us: 7_000 });
}

#[test]
fn a_chain_begins_with_all_that_draws_depend_on() {
    let made = |mode, sold_out: &SoldOut, kind| {
        let items = vec![Item::limited("car", 1, 5), Item::limited("mug", 9, 9)];
        let catalogue = Catalogue::with(items, mode, sold_out.clone()).expect("a catalogue");
        let make = |weights: &[u64]| AnySelector::with(kind, weights);
        Pool::with_selector(&catalogue, secret(1), secret(2), make).origin()
    };
    let fallbacks = ["car", "mug"].map(|id| SoldOut::Fallback(id.into()));
    let mut origins = HashSet::new();
    for mode in [Mode::FixedOdds, Mode::PerUnit] {
        for sold_out in [&SoldOut::Renormalise, &SoldOut::NoPrize, &fallbacks[0], &fallbacks[1]] {
            if mode == Mode::PerUnit && *sold_out == SoldOut::NoPrize {
                continue;
            }
            let origin = made(mode, sold_out, SelectorKind::Tree);
            assert!(origins.insert(origin.to_string()), "{mode:?}, {sold_out:?}");
            assert_eq!(made(mode, sold_out, SelectorKind::Fenwick), origin, "it gives the same items");
            let alias = made(mode, sold_out, SelectorKind::Alias);
            assert!(origins.insert(alias.to_string()), "it gives others");
        }
    }
}

#[test]
fn a_pool_that_takes_anothers_place_goes_on_with_its_numbers() {
    let mut pool = pool();
    pool.number_from(1000).expect("room is left");
    assert_ne!(pool.origin(), Chain::begin(b""));
    assert_eq!(pool.draw().expect("without an end").number, 1000);
    assert_eq!(pool.epoch().first_draw, 1000);
    let refused = pool.number_from(5).unwrap_err();
    assert_eq!(refused, Refusal::FirstDraw { first_draw: 5, max: FIRST_DRAW_MAX });
    assert!(
        self::pool().number_from(FIRST_DRAW_MAX).is_ok()
            && self::pool().number_from(FIRST_DRAW_MAX + 1).is_err()
    );
}
