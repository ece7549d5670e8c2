//! Pools that are made again from what was staged, and what is said of logs that were not staged like this.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{Catalogue, Divergence, Ending, Event, Item, Pool, Refusal, Repeats, Secret};

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
        for event in tidemark_pool::Events::new(first.staged()) {
            do_again(&mut again, &event.expect("an event")).expect("it was so");
        }
        assert!(again.urn().entries().eq(first.urn().entries()));
        assert_eq!((again.next_draw(), again.ending(2)), (5, Some(Ending::Cancelled)));
    }
}
