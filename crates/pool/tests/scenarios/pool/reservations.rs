//! Reservations: draws that the pool holds.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    Catalogue, DRAWS_MAX, Draw, ENDED_KEPT, Empty, Ending, Item, Pool, RESERVED_DRAWS_MAX, Refusal, Repeats,
    Secret, Stock,
};

fn pool(items: &[Item]) -> Pool<WideTree> {
    let catalogue = Catalogue::new(items.to_vec()).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]))
}

fn stock(pool: &Pool<WideTree>, id: &str) -> (Stock, u64) {
    let entry = pool.urn().find(id).and_then(|item| pool.urn().entry(item)).expect("it is there");
    (entry.stock, entry.drawn)
}

#[test]
fn what_is_set_aside_is_out_of_stock_and_counts_once_it_is_confirmed() {
    let mut pool = pool(&[Item::limited("seat", 1, 2)]);
    let reservation = pool.reserve(2, Repeats::Allowed, 100).expect("two are there");
    let draws = [Draw { number: 0, item: Some(0) }, Draw { number: 1, item: Some(0) }];
    assert_eq!((reservation.number(), &*reservation.draws, reservation.until_us), (0, &draws[..], 100));
    assert_eq!((stock(&pool, "seat"), pool.held(0)), ((Stock::Limited(0), 2), 2));
    assert_eq!(pool.draw(), Err(Empty));
    pool.confirm(0).expect("it is open");
    assert_eq!((stock(&pool, "seat"), pool.held(0)), ((Stock::Limited(0), 2), 0));
    assert_eq!((pool.reservation(0), pool.ending(0)), (None, Some(Ending::Confirmed)));
}

#[test]
fn what_is_cancelled_can_be_drawn_again_under_another_number() {
    let mut pool = pool(&[Item::limited("seat", 1, 1)]);
    pool.reserve(1, Repeats::Allowed, 100).expect("one is there");
    pool.cancel(0).expect("it is open");
    assert_eq!(pool.draw(), Ok(Draw { number: 1, item: Some(0) }));
}

#[test]
fn time_ends_reservations_in_the_order_of_their_ends() {
    let mut pool = pool(&[Item::limited("seat", 1, 3)]);
    for until_us in [30, 10, 20] {
        pool.reserve(1, Repeats::Allowed, until_us).expect("three are there");
    }
    assert_eq!(pool.expire_one(9), None);
    assert_eq!([pool.expire_one(20), pool.expire_one(20), pool.expire_one(20)], [Some(1), Some(2), None]);
    assert_eq!((stock(&pool, "seat"), pool.reservations().len()), ((Stock::Limited(2), 1), 1));
    let late = pool.confirm(1);
    assert_eq!(late, Err(Refusal::Ended { number: 1, how: Ending::Expired }));
    assert_eq!(late.unwrap_err().to_string(), "reservation 1 is over: it has expired");
}

#[test]
fn a_repeated_request_gets_the_same_answer() {
    let mut pool = pool(&[Item::limited("seat", 1, 2)]);
    for _ in 0..2 {
        pool.reserve(1, Repeats::Allowed, 100).expect("two are there");
    }
    assert_eq!([pool.confirm(0), pool.confirm(0), pool.cancel(1), pool.cancel(1)], [const { Ok(()) }; 4]);
    assert_eq!(pool.cancel(0), Err(Refusal::Ended { number: 0, how: Ending::Confirmed }));
    assert_eq!(pool.confirm(1), Err(Refusal::Ended { number: 1, how: Ending::Cancelled }));
    assert_eq!(stock(&pool, "seat"), (Stock::Limited(1), 1));
    assert_eq!(pool.confirm(2), Err(Refusal::NoReservation { number: 2 }));
}

#[test]
fn what_is_set_aside_is_not_given_back_by_its_name() {
    let mut pool = pool(&[Item::limited("seat", 1, 2)]);
    pool.reserve(1, Repeats::Allowed, 100).expect("two are there");
    let refused = pool.give_back("seat", 1);
    assert_eq!(refused, Err(Refusal::NotDrawn { id: "seat".into(), count: 1, drawn: 0 }));
    pool.cancel(0).expect("it is open");
    assert_eq!(stock(&pool, "seat"), (Stock::Limited(2), 0));
}

#[test]
fn of_items_that_were_removed_nothing_comes_back() {
    let mut pool = pool(&[Item::limited("seat", 1, 2), Item::limited("other", 1, 1)]);
    pool.remove("other").expect("it is there");
    pool.reserve(2, Repeats::Allowed, 100).expect("two are there");
    pool.remove("seat").expect("it is there");
    pool.add(&Item::limited("seat", 1, 5)).expect("the id is free");
    pool.cancel(0).expect("it is open");
    assert_eq!(stock(&pool, "seat"), (Stock::Limited(5), 0));
    assert_eq!(pool.urn().total_weight(), 1);
}

#[test]
fn a_reservation_that_is_refused_takes_nothing() {
    let mut pool = pool(&[Item::limited("seat", 1, 2)]);
    let refused = pool.reserve(3, Repeats::Allowed, 100).unwrap_err();
    assert_eq!(refused, Refusal::NotSoMany { wanted: 3, left: 2 });
    assert_eq!((stock(&pool, "seat"), pool.next_draw()), ((Stock::Limited(2), 0), 0));
}

#[test]
fn how_the_last_ones_ended_is_known_also_after_something_was_taken_back() {
    let mut pool = pool(&[Item::unlimited("seat", 1)]);
    for number in 0..=ENDED_KEPT as u64 {
        pool.reserve(1, Repeats::Allowed, 100).expect("without an end");
        pool.cancel(number).expect("it is open");
    }
    let known = |pool: &Pool<WideTree>| [0, 1, 2].map(|number| pool.ending(number).is_some());
    assert_eq!(known(&pool), [false, true, true]);
    assert_eq!(pool.cancel(0), Err(Refusal::NoReservation { number: 0 }));
    pool.stage();
    pool.reserve(1, Repeats::Allowed, 100).expect("without an end");
    pool.confirm(ENDED_KEPT as u64 + 1).expect("it is open");
    assert_eq!(known(&pool), [false, false, true]);
    pool.revert();
    assert_eq!(known(&pool), [false, true, true]);
    assert_eq!(pool.ending(ENDED_KEPT as u64 + 1), None);
}

#[test]
fn so_much_can_be_set_aside_and_no_more() {
    let mut pool = pool(&[Item::unlimited("seat", 1)]);
    for _ in 0..RESERVED_DRAWS_MAX / DRAWS_MAX {
        pool.reserve(DRAWS_MAX, Repeats::Allowed, 100).expect("there is room");
    }
    let refused = pool.reserve(1, Repeats::Allowed, 100);
    assert_eq!(refused, Err(Refusal::TooManySetAside { count: 1, max: RESERVED_DRAWS_MAX }));
    pool.draw().expect("what is not set aside is drawn");
    pool.confirm(0).expect("it is open");
    pool.reserve(1, Repeats::Allowed, 100).expect("there is room again");
}
