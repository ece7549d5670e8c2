//! Schedules, one scenario per test.

use tidemark_pool::selector::WideTree;
use tidemark_pool::{
    AMOUNT_MAX, Catalogue, CatalogueError, ChainedPool, Divergence, Event, Item, MOMENT_MS_MAX, Mode, Pool,
    Refusal, Release, Repeats, Schedule, ScheduleError, Secret, SoldOut, Stock, Unsold,
};

const HOUR_MS: u64 = 3_600_000;
const HOUR_US: u64 = HOUR_MS * 1000;

fn release(item: &str, units: u64, from_ms: u64, every_ms: u64, times: u64) -> Release {
    Release { item: item.into(), units, from_ms, every_ms, times, unsold: Unsold::Stays }
}

fn lapsing(release: Release) -> Release {
    Release { unsold: Unsold::Lapses, ..release }
}

fn catalogue(items: &[Item], mode: Mode, releases: &[Release]) -> Result<Catalogue, CatalogueError> {
    let sold_out = SoldOut::Renormalise;
    Catalogue::with(items.to_vec(), mode, sold_out)?.scheduled(Schedule::new(releases.to_vec())?)
}

fn pool(items: &[Item], releases: &[Release]) -> Pool<WideTree> {
    let catalogue = catalogue(items, Mode::FixedOdds, releases).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]))
}

fn left(pool: &Pool<WideTree>, item: u32) -> u64 {
    match pool.urn().entry(item).expect("it is there").stock {
        Stock::Limited(left) => left,
        Stock::Unlimited => panic!("it is limited"),
    }
}

#[test]
fn stock_comes_in_windows_and_is_drawn_once() {
    let mut pool = pool(&[Item::limited("car", 1, 0)], &[release("car", 6, 10 * HOUR_MS, HOUR_MS, 3)]);
    assert_eq!(pool.next_due(), Some(10 * HOUR_US));
    let mut drawn = Vec::new();
    let refused = pool.draw_many(1, Repeats::Allowed, &mut drawn);
    assert_eq!(refused, Err(Refusal::EmptyUntil { at_ms: 10 * HOUR_MS }));
    assert!(!pool.advance(10 * HOUR_US - 1), "a microsecond too early");
    assert!(pool.advance(10 * HOUR_US));
    assert!(!pool.advance(10 * HOUR_US), "it has come");
    pool.draw_many(2, Repeats::Allowed, &mut drawn).expect("two have come");
    assert!(pool.draw().is_err());
    // Without an advance for hours, as when the server was not running, everything due is released.
    assert!(pool.advance(20 * HOUR_US));
    assert_eq!((left(&pool, 0), pool.next_due()), (4, None));
    assert!(!pool.advance(5 * HOUR_US), "a clock that goes back changes nothing");
    pool.draw_many(4, Repeats::Allowed, &mut drawn).expect("the rest");
    assert_eq!(
        pool.draw_many(1, Repeats::Allowed, &mut drawn),
        Err(Refusal::Empty),
        "nothing comes any more"
    );
    assert_eq!(pool.urn().version(), 1, "the catalogue is unchanged");
}

#[test]
fn what_is_not_drawn_in_its_window_lapses() {
    let releases = [lapsing(release("mug", 30, HOUR_MS, HOUR_MS, 3)), release("mug", 1, 2 * HOUR_MS, 1, 1)];
    let mut pool = pool(&[Item::limited("mug", 1, 5), Item::unlimited("none", 0)], &releases);
    assert!(pool.advance(HOUR_US));
    assert_eq!(left(&pool, 0), 15, "what was there before is there until a window ends");
    pool.draw_many(3, Repeats::Allowed, &mut Vec::new()).expect("three of them");
    pool.advance(2 * HOUR_US);
    assert_eq!(left(&pool, 0), 11, "what comes at that moment comes behind what lapses");
    // Windows that passed without an advance have ended too.
    pool.advance(4 * HOUR_US);
    assert_eq!((left(&pool, 0), pool.next_due()), (0, None));
    assert_eq!(pool.urn().entry(0).map(|entry| entry.drawn), Some(3));
}

#[test]
fn what_is_given_back_in_its_window_lapses_with_it_and_later_stays() {
    let releases = [lapsing(release("mug", 2, HOUR_MS, HOUR_MS, 1))];
    let mut pool = pool(&[Item::limited("mug", 1, 0)], &releases);
    pool.catch_up(HOUR_US);
    pool.reserve(1, Repeats::Allowed, HOUR_US + 1000).expect("one");
    pool.reserve(1, Repeats::Allowed, 3 * HOUR_US).expect("another");
    pool.catch_up(5 * HOUR_US);
    assert_eq!((left(&pool, 0), pool.reservations().len(), pool.next_due()), (1, 0, None));
}

#[test]
fn the_end_of_a_window_is_one_instant_however_often_the_pool_is_read() {
    let releases = [lapsing(release("mug", 3, HOUR_MS, HOUR_MS, 1))];
    let left_behind = |looks: &[u64]| {
        let mut pool = pool(&[Item::limited("mug", 1, 0)], &releases);
        pool.catch_up(HOUR_US);
        for until_us in [2 * HOUR_US - 1, 2 * HOUR_US, 2 * HOUR_US + 1] {
            pool.reserve(1, Repeats::Allowed, until_us).expect("one");
        }
        looks.iter().for_each(|&now_us| pool.catch_up(now_us));
        left(&pool, 0)
    };
    // A unit that returns after the end, even within the same millisecond, is not part of the
    // window.
    assert_eq!(left_behind(&[2 * HOUR_US + 1]), 1);
    assert_eq!(left_behind(&[2 * HOUR_US - 1, 2 * HOUR_US, 2 * HOUR_US + 1]), 1);
}

#[test]
fn time_passes_in_parts_as_it_does_at_once() {
    let releases = [lapsing(release("mug", 5, HOUR_MS, HOUR_MS, 1))];
    let mut pool = pool(&[Item::limited("mug", 1, 0)], &releases);
    pool.catch_up(HOUR_US);
    for _ in 0..5 {
        pool.reserve(1, Repeats::Allowed, HOUR_US + 1000).expect("one");
    }
    let parts: Vec<bool> = (0..3).map(|_| pool.catch_up_some(9 * HOUR_US, 2)).collect();
    assert_eq!((parts, pool.overdue(9 * HOUR_US)), (vec![false, false, true], 0));
    assert_eq!(left(&pool, 0), 0, "all came back before the window ended, and lapsed with it");
}

#[test]
fn what_is_gone_or_unlimited_by_now_gets_nothing() {
    let items = [Item::limited("car", 1, 0), Item::limited("mug", 1, 1), Item::limited("hat", 1, 0)];
    let releases = ["car", "mug", "hat"].map(|item| lapsing(release(item, 4, HOUR_MS, HOUR_MS, 2)));
    let mut pool = pool(&items, &releases);
    pool.remove("car").expect("it is there");
    pool.add(&Item::limited("car", 1, 9)).expect("the id is free");
    pool.set_stock("mug", Stock::Unlimited).expect("it is possible");
    pool.advance(HOUR_US);
    assert!(pool.urn().entry(0).is_none());
    assert_eq!(pool.urn().entry(1).map(|entry| entry.stock), Some(Stock::Unlimited));
    assert_eq!((left(&pool, 2), left(&pool, 3)), (2, 9), "another item of that id has no schedule");
    pool.set_stock("mug", Stock::Limited(7)).expect("it is possible");
    pool.advance(2 * HOUR_US);
    assert_eq!(left(&pool, 1), 2, "what is limited again goes on");
}

#[test]
fn all_that_is_promised_has_its_place() {
    let release = [release("ticket", 10, HOUR_MS, HOUR_MS, 5)];
    let items = [Item::limited("ticket", 1, 0), Item::limited("other", 1, 1)];
    let catalogue = catalogue(&items, Mode::PerUnit, &release).expect("a catalogue");
    let mut pool = Pool::<WideTree>::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]));
    assert_eq!(pool.reweight("ticket", AMOUNT_MAX / 9), Err(Refusal::TooMuch { id: "ticket".into() }));
    pool.reweight("ticket", AMOUNT_MAX / 11).expect("ten times fit");
    assert_eq!(pool.set_stock("ticket", Stock::Limited(2)), Err(Refusal::TooMuch { id: "ticket".into() }));
    pool.advance(9 * HOUR_US);
    assert_eq!((left(&pool, 0), pool.urn().total_weight()), (10, AMOUNT_MAX / 11 * 10 + 1));
}

#[test]
fn schedules_that_cannot_be_kept_are_refused() {
    let items = [Item::limited("car", 3, 1), Item::unlimited("mug", 0)];
    let said =
        |mode, releases: &[Release]| catalogue(&items, mode, releases).expect_err("it is wrong").to_string();
    let fixed = Mode::FixedOdds;
    assert_eq!(
        said(fixed, &[release("hat", 1, 1, 1, 1)]),
        "release 1 is of the item \"hat\", which is not there: name one of the catalogue"
    );
    assert_eq!(
        said(fixed, &[release("car", 1, 1, 1, 1), release("mug", 1, 1, 1, 1)]),
        "release 2 is of the item \"mug\", which is unlimited: give it a quantity, which may be 0"
    );
    assert_eq!(
        said(fixed, &[release("car", 0, 1, 1, 1)]),
        "release 1: its number of units is 0, and must be 1 to 9223372036854775807"
    );
    assert_eq!(
        said(fixed, &[release("car", 1, 1, 1, MOMENT_MS_MAX)]),
        "release 1 ends after the year 9999: use fewer or shorter windows"
    );
    let most = release("car", AMOUNT_MAX - 1, 1, 1, 1);
    assert!(catalogue(&items, fixed, std::slice::from_ref(&most)).is_ok());
    assert_eq!(
        said(fixed, &[most.clone(), release("car", 1, 1, 1, 1)]),
        "with release 2 there are more than 9223372036854775807 units of \"car\" in all: use fewer"
    );
    assert!(
        said(Mode::PerUnit, &[most]).starts_with("with item 1, \"car\", the weights add up to more than")
    );
    let many = vec![release("car", 1, 1, 1, 1); 65_537];
    assert_eq!(Schedule::new(many), Err(ScheduleError::TooMany { count: 65_537 }));
}

/// An auditor of a log knows which releases were due at each time.
#[test]
fn an_auditor_sees_that_the_schedule_was_kept() {
    let catalogue = catalogue(
        &[Item::limited("car", 1, 1), Item::unlimited("mug", 9)],
        Mode::FixedOdds,
        &[release("car", 2, HOUR_MS, HOUR_MS, 2)],
    )
    .expect("a catalogue");
    let new = || Pool::<WideTree>::new(&catalogue, Secret::new([7; 32]), Secret::new([8; 32]));
    let draw = Event::Drew(Some(1));
    let mut pool = new();
    pool.stage();
    pool.advance(HOUR_US);
    pool.draw().expect("there are mugs");
    let staged = pool.staged().to_vec();
    let mut again = new();
    for event in tidemark_pool::Events::new(&staged) {
        again.check(HOUR_US, &event.expect("an event")).expect("it was so");
    }
    assert_eq!((again.next_draw(), left(&again, 0)), (pool.next_draw(), left(&pool, 0)));
    assert_eq!(
        new().check(HOUR_US, &draw),
        Err(Divergence::HeldBack { draw: 0, due_ms: HOUR_MS, time_us: HOUR_US })
    );
    let advanced = Event::Advanced { now_ms: HOUR_MS };
    assert_eq!(
        new().check(HOUR_US - 1, &advanced),
        Err(Divergence::Hurried { now_ms: HOUR_MS, time_us: HOUR_US - 1 })
    );
    let mut twice = new();
    twice.check(HOUR_US, &advanced).expect("it is due");
    assert_eq!(twice.check(HOUR_US, &advanced), Err(Divergence::NothingDue { draws: 0, now_ms: HOUR_MS }));
}

#[test]
fn two_pools_of_other_schedules_begin_other_chains() {
    let chain = |releases: &[Release]| ChainedPool::new(pool(&[Item::limited("car", 1, 1)], releases)).chain;
    assert_ne!(chain(&[]), chain(&[release("car", 1, 1, 1, 1)]));
    assert_ne!(chain(&[release("car", 2, 1, 1, 1)]), chain(&[release("car", 1, 1, 1, 1)]));
}
