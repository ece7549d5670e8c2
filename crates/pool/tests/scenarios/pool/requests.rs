//! A repeated request with the same id gets the same answer, and no further draws.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    By, Catalogue, Divergence, Draw, Event, Events, Item, NAME_BYTES_MAX, Pool, Refusal, Repeats, Secret,
};

fn pool(items: Vec<Item>) -> Pool<WideTree> {
    let catalogue = Catalogue::new(items).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]))
}

fn ask(pool: &mut Pool<WideTree>, by: &By<'_>, count: usize) -> Result<Vec<Draw>, Refusal> {
    let mut drawn = Vec::new();
    pool.draw_by(by, count, Repeats::Allowed, &mut drawn).map(|()| drawn)
}

#[test]
fn a_request_that_is_made_again_is_answered_again_and_draws_nothing() {
    let mut pool = pool(vec![Item::limited("car", 1, 1), Item::limited("mug", 9, 9)]);
    let by = By { user: Some(b"mira"), ..By::request(b"order 17") };
    let first = ask(&mut pool, &by, 3).expect("so many are there");
    ask(&mut pool, &By::request(b"order 18"), 1).expect("there is one");
    assert_eq!(ask(&mut pool, &by, 3), Ok(first));
    assert_eq!(pool.next_draw(), 4);
}

#[test]
fn an_id_belongs_to_one_request() {
    let mut pool = pool(vec![Item::unlimited("mug", 1)]);
    let by = By { user: Some(b"mira"), ..By::request(b"order 17") };
    ask(&mut pool, &by, 2).expect("without an end");
    let other = Err(Refusal::OtherRequest { id: "order 17".into() });
    assert_eq!(ask(&mut pool, &by, 3), other);
    assert_eq!(ask(&mut pool, &By::request(b"order 17"), 2), other);
    assert_eq!(ask(&mut pool, &By { user: Some(b"noah"), ..by }, 2), other);
    assert_eq!(pool.draw_by(&by, 2, Repeats::Excluded, &mut Vec::new()).map(|()| Vec::new()), other);
    assert_eq!(pool.reserve_by(&by, 2, Repeats::Allowed, 9).map(|_| Vec::new()), other);
    assert_eq!(pool.next_draw(), 2);
}

#[test]
fn a_repeated_reservation_gets_the_same_answer_whatever_has_become_of_it() {
    let mut pool = pool(vec![Item::limited("seat", 1, 1)]);
    let by = By::request(b"order 17");
    let first = pool.reserve_by(&by, 1, Repeats::Allowed, 100).expect("there is one");
    assert_eq!(pool.reserve_by(&by, 1, Repeats::Allowed, 200), Ok(first.clone()));
    pool.cancel(first.number()).expect("it is open");
    assert_eq!(pool.reserve_by(&by, 1, Repeats::Allowed, 300), Ok(first));
    assert_eq!((pool.next_draw(), pool.reservations().len()), (1, 0));
}

#[test]
fn what_was_refused_may_be_asked_for_again() {
    let mut pool = pool(vec![Item::limited("mug", 1, 1)]);
    let by = By::request(b"order 17");
    assert_eq!(ask(&mut pool, &by, 2), Err(Refusal::NotSoMany { wanted: 2, left: 1 }));
    pool.restock("mug", 1).expect("fits");
    assert_eq!(ask(&mut pool, &by, 2).map(|drawn| drawn.len()), Ok(2));
}

#[test]
fn names_have_a_length() {
    let mut pool = pool(vec![Item::unlimited("mug", 1)]);
    let long = [b'x'; NAME_BYTES_MAX + 1];
    for name in [&b""[..], &long] {
        let refused = |what| Err(Refusal::NameLength { what, bytes: name.len(), max: NAME_BYTES_MAX });
        assert_eq!(ask(&mut pool, &By::request(name), 1), refused("request"));
        assert_eq!(ask(&mut pool, &By { user: Some(name), ..By::default() }, 1), refused("user"));
    }
    assert!(ask(&mut pool, &By::request(&long[1..]), 1).is_ok());
}

#[test]
fn a_log_that_has_a_request_twice_is_damaged() {
    let mut first = pool(vec![Item::unlimited("mug", 1)]);
    first.stage();
    ask(&mut first, &By::request(b"order 17"), 1).expect("without an end");
    let twice = first.staged().repeat(2);
    for do_again in [Pool::apply, Pool::verify] {
        let mut again = pool(vec![Item::unlimited("mug", 1)]);
        let events: Vec<Event<'_>> = Events::new(&twice).map(|event| event.expect("an event")).collect();
        assert_eq!(do_again(&mut again, &events[0]), Ok(()));
        let refused = do_again(&mut again, &events[1]);
        assert!(matches!(refused, Err(Divergence::Refused { refusal: Refusal::OtherRequest { .. }, .. })));
    }
}
