//! Pools replayed from their staged events, and the divergences of logs that no pool staged.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    Asked, By, Catalogue, Divergence, Ending, Event, Events, Item, Mode, Pool, Refusal, Repeats, Secret,
    SoldOut, Stock,
};

fn pool() -> Pool<WideTree> {
    let items = vec![Item::limited("car", 1, 1), Item::unlimited("mug", 99)];
    let catalogue = Catalogue::new(items).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]))
}

#[test]
fn a_draw_that_was_changed_in_the_log_is_found() {
    let first = pool().draw().expect("without an end").item;
    let other = if first == Some(0) { Some(1) } else { Some(0) };
    let mut trusting = pool();
    trusting.apply(&Event::Drew(other)).expect("it could have been");
    let found = pool().verify(&Event::Drew(other)).unwrap_err();
    assert_eq!(found, Divergence::OtherItem { draw: 0, recorded: other, computed: first });
    pool().verify(&Event::Drew(first)).expect("it is what follows");
}

#[test]
fn what_cannot_have_been_drawn_is_found_without_making_draws_again() {
    let mut pool = pool();
    pool.apply(&Event::Drew(Some(0))).expect("one is there");
    let twice = pool.apply(&Event::Drew(Some(0))).unwrap_err();
    assert_eq!(twice, Divergence::NoneLeft { draw: 1, item: 0 });
    assert_eq!(twice.to_string(), "draw 1 is said to have given item 0, of which nothing was left");
    assert_eq!(pool.apply(&Event::Drew(Some(2))), Err(Divergence::NoItem { draws: 1, item: 2 }));
}

#[test]
fn what_is_refused_cannot_have_been_done() {
    let refused = |event: &Event<'_>| pool().apply(event).unwrap_err();
    let refusal = Refusal::NotDrawn { id: "car".into(), count: 1, drawn: 0 };
    assert_eq!(refused(&Event::GivenBack { item: 0, count: 1 }), Divergence::Refused { draws: 0, refusal });
    let refusal = Refusal::NoReservation { number: 0 };
    let ended = Event::Ended { number: 0, how: Ending::Confirmed };
    assert_eq!(refused(&ended), Divergence::Refused { draws: 0, refusal });
    assert_eq!(refused(&Event::Removed { item: 9 }), Divergence::NoItem { draws: 0, item: 9 });
}

#[test]
fn several_at_once_are_made_again_as_they_were_made() {
    let mut first = pool();
    first.stage();
    first.draw_many(2, Repeats::Excluded, &mut Vec::new()).expect("two items are there");
    first.reserve(3, Repeats::Allowed, 50).expect("without an end");
    first.cancel(2).expect("it is open");
    assert_eq!(first.staged_draws(), 5);
    for do_again in [Pool::<WideTree>::apply, Pool::<WideTree>::verify] {
        let mut again = pool();
        for event in Events::new(first.staged()) {
            do_again(&mut again, &event.expect("an event")).expect("it was so");
        }
        assert!(again.urn().entries().eq(first.urn().entries()));
        assert_eq!((again.next_draw(), again.ending(2)), (5, Some(Ending::Cancelled)));
    }
}

/// Returns a pool with two prizes and no prize in place of what is sold out: the last draws of a
/// large call can give nothing.
fn two_prizes() -> Pool<WideTree> {
    let items = vec![Item::limited("car", 1, 1), Item::limited("mug", 9, 1)];
    let catalogue = Catalogue::with(items, Mode::FixedOdds, SoldOut::NoPrize).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]))
}

#[test]
fn a_call_of_more_draws_than_were_possible_is_checked_as_one() {
    for repeats in [Repeats::Allowed, Repeats::Excluded] {
        for request in [None, Some(&b"order 17"[..])] {
            for until_us in [None, Some(50)] {
                let mut first = two_prizes();
                let (mut draws, by) = (Vec::new(), By { request, ..By::default() });
                // There are no mugs, so a draw may meet the mug any number of times.
                first.set_stock("mug", Stock::Limited(0)).expect("fits");
                let begin =
                    |pool: &mut Pool<WideTree>| pool.set_stock("mug", Stock::Limited(0)).expect("fits");
                first.stage();
                match until_us {
                    None => first.draw_by(&by, 200, repeats, &mut draws).expect("the first is possible"),
                    Some(until_us) => {
                        let reserved = first.reserve_by(&by, 200, repeats, until_us);
                        draws = reserved.expect("the first is possible").draws.into();
                    }
                }
                assert!(draws.iter().enumerate().all(|(place, draw)| draw.number == place as u64));
                assert_eq!(draws.iter().filter(|draw| draw.item == Some(0)).count(), 1);
                assert_eq!((draws.len(), first.next_draw()), (200, 200));
                for way in 0..3 {
                    let mut again = two_prizes();
                    begin(&mut again);
                    for event in Events::new(first.staged()) {
                        let event = event.expect("an event");
                        let done = match way {
                            0 => again.apply(&event),
                            1 => again.verify(&event),
                            _ => again.check(9, &event),
                        };
                        done.expect("it was so");
                    }
                    assert!(again.urn().entries().eq(first.urn().entries()));
                    assert!(again.reservations().eq(first.reservations()));
                    assert_eq!(again.next_draw(), 200);
                }
            }
        }
    }
}

#[test]
fn draws_of_nothing_are_made_up_in_no_other_way() {
    let asked = |items: &[Option<u32>]| {
        let (by, items) = (By::default(), items.to_vec());
        Event::Asked(Box::new(Asked { by, items, repeats: Repeats::Allowed, until_us: None }))
    };
    let mut drawn = Vec::new();
    two_prizes().draw_many(50, Repeats::Allowed, &mut drawn).expect("the first is possible");
    let items: Vec<_> = drawn.iter().map(|draw| draw.item).collect();
    two_prizes().verify(&asked(&items)).expect("it was so");
    // A draw of nothing before the prizes are gone skips a number.
    let first = items.iter().position(Option::is_some).expect("there are two prizes");
    let mut passed_over = items.clone();
    passed_over.insert(first, None);
    let found = two_prizes().verify(&asked(&passed_over)).unwrap_err();
    assert!(matches!(found, Divergence::OtherItem { draw, .. } if draw == first as u64), "{found}");
    // No draw begins when nothing is left, neither a single draw nor a call.
    let mut empty = two_prizes();
    empty.verify(&asked(&items)).expect("it was so");
    let refused = Divergence::Refused { draws: 50, refusal: Refusal::Empty };
    assert_eq!(empty.verify(&Event::Drew(None)), Err(refused.clone()));
    assert_eq!(empty.verify(&asked(&[None, None])), Err(refused));
}
