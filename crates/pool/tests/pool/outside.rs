//! What somebody can check of a pool who knows no secret but those that were revealed.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    Catalogue, Chain, Commitment, Divergence, Ending, Event, Events, FIRST_DRAW_MAX, Item, Pool, PoolImage,
    Refusal, Repeats, Secret, sealed, unsealed,
};

fn secret(number: u8) -> Secret {
    Secret::new([number; 32])
}

fn pool() -> Pool<WideTree> {
    let items = vec![Item::limited("car", 1, 5), Item::unlimited("mug", 9)];
    let catalogue = Catalogue::new(items).expect("a catalogue");
    Pool::new(&catalogue, secret(1), secret(2))
}

/// Epoch 0 is over, and epoch 1 is not: what is staged, and what is published of it.
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

/// The pool as it was published before the first draw, with these secrets.
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

/// The secrets of these numbers, where they fit.
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
    // A secret with another commitment is none.
    published(knows(&[9])).check(0, &changed).expect("nobody can tell");
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
