//! Promises of a counter's account under any sequence of events, compared with sums of what was
//! admitted and refunded.

use proptest::prelude::*;
use tidemark_counter::{Account, Counter, Kind, MAX, Promise, Refusal};

/// An event in the life of a counter.
#[derive(Debug, Clone, Copy)]
enum Step {
    Take(u64),
    Refund(u64),
    Add(i64),
    Seal,
    SealFor(i64),
    Acknowledge,
    Reject,
    Limit(i64),
    Plain,
    Promise(Promise),
    /// The process dies; the store has received what was sealed, or not.
    Crash {
        arrived: bool,
    },
    Stripe,
}

fn amounts() -> impl Strategy<Value = u64> {
    prop_oneof![6 => 0..20u64, 2 => 0..200u64, 1 => any::<u64>(), 1 => (MAX as u64 - 3)..(MAX as u64 + 3)]
}

fn deltas() -> impl Strategy<Value = i64> {
    prop_oneof![6 => -20..20i64, 2 => -200..200i64, 1 => any::<i64>()]
}

fn promises() -> impl Strategy<Value = Promise> {
    let units =
        || prop_oneof![4 => 1..50u64, 1 => 1..1000u64, 1 => any::<u64>().prop_map(|units| units.max(1))];
    prop_oneof![
        units().prop_map(|cap| Promise::Relaxed { cap }),
        units().prop_map(|block| Promise::Exact { block })
    ]
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        1 => Just(Kind::Plain),
        3 => (0..300i64).prop_map(|limit| Kind::Quota { limit }),
        1 => any::<i64>().prop_map(|limit| Kind::Quota { limit }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => amounts().prop_map(Step::Take),
        6 => amounts().prop_map(Step::Refund),
        3 => deltas().prop_map(Step::Add),
        2 => Just(Step::Seal),
        2 => deltas().prop_map(Step::SealFor),
        3 => Just(Step::Acknowledge),
        1 => Just(Step::Reject),
        1 => (0..300i64).prop_map(Step::Limit),
        1 => Just(Step::Plain),
        1 => promises().prop_map(Step::Promise),
        1 => any::<bool>().prop_map(|arrived| Step::Crash { arrived }),
        1 => Just(Step::Stripe),
    ];
    proptest::collection::vec(step, 1..80)
}

/// Events around limits that change: all numbers are small, so that they meet.
fn steps_around_bounds() -> impl Strategy<Value = Vec<Step>> {
    let promise = prop_oneof![
        (1..12u64).prop_map(|cap| Promise::Relaxed { cap }),
        (1..12u64).prop_map(|block| Promise::Exact { block })
    ];
    let step = prop_oneof![
        6 => (1..5u64).prop_map(Step::Take),
        6 => (1..5u64).prop_map(Step::Refund),
        1 => (-5..5i64).prop_map(Step::Add),
        2 => Just(Step::Seal),
        1 => (-5..5i64).prop_map(Step::SealFor),
        3 => Just(Step::Acknowledge),
        2 => (0..15i64).prop_map(Step::Limit),
        1 => promise.prop_map(Step::Promise),
        1 => Just(Step::Stripe),
    ];
    proptest::collection::vec(step, 1..80)
}

/// The smallest correct model: sums.
#[derive(Debug, Default)]
struct Model {
    admitted_less_refunded: i128,
    stored: i128,
    sealed: i128,
}

fn check(books: &Account, model: &Model) {
    assert_eq!(i128::from(books.position()), model.admitted_less_refunded);
    assert_eq!(
        i128::from(books.durable()) + i128::from(books.sealed()) + i128::from(books.open()),
        model.admitted_less_refunded
    );
    assert_eq!((i128::from(books.durable()), i128::from(books.sealed())), (model.stored, model.sealed));
}

/// Checks the answer to a take, a refund or an addition against the sums, the limit and the
/// promise.
fn check_answer(before: &Account, delta: i128, is_take: bool, answer: Result<(), Refusal>) {
    let (low, high) = before.window();
    let to = i128::from(before.position()) + delta;
    let beyond_limit = match before.kind() {
        Kind::Quota { limit } => is_take && delta > 0 && to > i128::from(limit),
        Kind::Plain => false,
    };
    match answer {
        Ok(()) => {
            assert!(!beyond_limit, "admitted beyond the limit: {before:?} by {delta}");
            assert!(delta <= 0 || to <= i128::from(high), "moved out of the promise: {before:?} by {delta}");
            // A commit before the move cannot make room for a large refund if an exact counter has
            // nothing reserved.
            let is_bare = matches!(before.promise(), Promise::Exact { .. })
                && (before.open(), before.sealed()) == (0, 0);
            assert!(
                delta >= 0 || is_bare || to >= i128::from(low),
                "moved out of the promise: {before:?} by {delta}"
            );
        }
        Err(Refusal::Exhausted) => {
            assert!(beyond_limit, "refused while units were free: {before:?} by {delta}");
        }
        Err(Refusal::Unsettled) => assert!(
            to > i128::from(high) || to < i128::from(low),
            "asked for a commit that nothing needs: {before:?} by {delta}"
        ),
        Err(Refusal::OutOfRange) => assert!(
            delta.abs() > i128::from(MAX) || to.abs() > i128::from(MAX),
            "called out of range: {before:?} by {delta}"
        ),
    }
}

fn run(kind: Kind, promise: Promise, steps: &[Step]) {
    let mut counter = Counter::new(kind, promise, 0);
    let mut account = Account::new(kind, promise, 0);
    let mut model = Model::default();
    for step in steps {
        let before = account.clone();
        match *step {
            Step::Take(amount) => {
                let answer = account.take(amount);
                assert_eq!(counter.take(amount), answer);
                check_answer(&before, i128::from(amount), true, answer);
                if answer.is_ok() {
                    model.admitted_less_refunded += i128::from(amount);
                }
            }
            Step::Refund(amount) => {
                let answer = account.refund(amount);
                assert_eq!(counter.refund(amount), answer);
                if let Ok(refunded) = answer {
                    let most = match before.kind() {
                        Kind::Plain => amount,
                        Kind::Quota { .. } => amount.min(u64::try_from(before.position()).unwrap_or(0)),
                    };
                    assert_eq!(refunded, most);
                    model.admitted_less_refunded -= i128::from(refunded);
                }
            }
            Step::Add(delta) => {
                let answer = account.add(delta);
                assert_eq!(counter.add(delta), answer);
                check_answer(&before, i128::from(delta), false, answer);
                if answer.is_ok() {
                    model.admitted_less_refunded += i128::from(delta);
                }
            }
            Step::Seal | Step::SealFor(_) => {
                let (sealed, also) = match *step {
                    Step::SealFor(delta) => (account.seal_for(delta), counter.seal_for(delta)),
                    _ => (account.seal(), counter.seal()),
                };
                assert_eq!(sealed, also);
                let (low, high) = before.window();
                let has_room = |to| (low..=high).contains(&to);
                let needs_none = match *step {
                    Step::SealFor(delta) => before.position().checked_add(delta).is_some_and(has_room),
                    _ => true,
                };
                if needs_none && before.is_settled() && before.sealed() == 0 {
                    let mut after = account.clone();
                    after.acknowledge();
                    assert!(after.is_settled(), "sealed further than is promised: {before:?} by {step:?}");
                }
                if let Some(sealed) = sealed {
                    assert_eq!(before.sealed(), 0, "sealed twice");
                    assert_ne!(sealed, 0);
                    model.sealed = i128::from(sealed);
                }
            }
            Step::Acknowledge => {
                account.acknowledge();
                counter.acknowledge();
                model.stored += model.sealed;
                model.sealed = 0;
            }
            Step::Reject => {
                account.reject();
                counter.reject();
                model.sealed = 0;
            }
            Step::Limit(limit) => {
                account.set_kind(Kind::Quota { limit });
                counter.set_kind(Kind::Quota { limit });
            }
            Step::Plain => {
                account.set_kind(Kind::Plain);
                counter.set_kind(Kind::Plain);
            }
            Step::Promise(promise) => {
                account.set_promise(promise);
                counter.set_promise(promise);
            }
            Step::Stripe => counter.stripe(),
            Step::Crash { arrived } => {
                if arrived {
                    model.stored += model.sealed;
                }
                if before.is_settled() {
                    check_crash(&before, model.stored);
                }
                model.sealed = 0;
                model.admitted_less_refunded = model.stored;
                let stored = i64::try_from(model.stored).unwrap();
                account = Account::new(before.kind(), before.promise(), stored);
                counter = Counter::new(before.kind(), before.promise(), stored);
            }
        }
        check(&account, &model);
        // Without stopping the counter: a reader of its books may put them back differently.
        assert_eq!(counter.state(), account);
        assert_eq!((counter.position(), counter.available()), (account.position(), account.available()));
    }
    assert_eq!(counter.books(), account);
}

/// Checks that a crash kept the promise.
fn check_crash(before: &Account, stored: i128) {
    let forgotten = i128::from(before.position()) - stored;
    match before.promise() {
        Promise::Relaxed { cap } => assert!(forgotten.unsigned_abs() <= u128::from(cap), "{before:?}"),
        Promise::Exact { block } => {
            assert!(forgotten <= 0, "admits again what was admitted: {before:?}");
            assert!(forgotten.unsigned_abs() <= u128::from(block), "{before:?}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn a_counter_and_its_books_say_what_the_sums_say(kind in kinds(), promise in promises(), steps in steps()) {
        run(kind, promise, &steps);
    }

    #[test]
    fn nothing_slips_past_bounds_that_have_come_closer(kind in kinds(), promise in promises(), steps in steps_around_bounds()) {
        run(kind, promise, &steps);
    }

    /// Whatever the promise requires before a move, one commit for this move is enough.
    #[test]
    fn a_commit_makes_room_for_the_move_that_wanted_it(
        kind in kinds(), promise in promises(), steps in steps(), last in prop_oneof![amounts().prop_map(Step::Take), amounts().prop_map(Step::Refund), deltas().prop_map(Step::Add)]
    ) {
        let mut account = Account::new(kind, promise, 0);
        for step in steps {
            match step {
                Step::Take(amount) => drop(account.take(amount)),
                Step::Refund(amount) => drop(account.refund(amount)),
                Step::Add(delta) => drop(account.add(delta)),
                Step::Seal => drop(account.seal()),
                Step::Acknowledge => account.acknowledge(),
                Step::Promise(promise) => account.set_promise(promise),
                _ => {}
            }
        }
        account.acknowledge();
        let carry_out = |account: &mut Account| match last {
            Step::Take(amount) => account.take(amount),
            Step::Refund(amount) => account.refund(amount).map(|_| ()),
            Step::Add(delta) => account.add(delta),
            _ => unreachable!(),
        };
        if carry_out(&mut account.clone()) == Err(Refusal::Unsettled) {
            let delta = match last {
                Step::Take(amount) => i64::try_from(amount).unwrap(),
                Step::Refund(amount) => match account.kind() {
                    Kind::Plain => -i64::try_from(amount).unwrap(),
                    Kind::Quota { .. } => -i64::try_from(amount).unwrap().min(account.position().max(0)),
                },
                Step::Add(delta) => delta,
                _ => unreachable!(),
            };
            prop_assert!(account.seal_for(delta).is_some());
            prop_assert_ne!(carry_out(&mut account.clone()), Err(Refusal::Exhausted));
            account.acknowledge();
            prop_assert_eq!(carry_out(&mut account), Ok(()));
        }
    }
}

#[test]
fn an_exact_quota_never_has_more_reserved_than_its_limit() {
    let mut account = Account::new(Kind::Quota { limit: 10 }, Promise::Exact { block: 100 }, 0);
    assert_eq!(account.take(1), Err(Refusal::Unsettled));
    assert_eq!(account.seal_for(1), Some(10));
    account.acknowledge();
    for _ in 0..10 {
        account.take(1).unwrap();
    }
    assert_eq!(account.take(1), Err(Refusal::Exhausted));
    assert_eq!((account.durable(), account.open()), (10, 0));
}

#[test]
fn a_commit_from_one_end_of_the_range_to_the_other_does_not_overflow() {
    let mut account = Account::new(Kind::Plain, Promise::Exact { block: 1 << 61 }, -MAX);
    assert_eq!(account.add(i64::MAX), Err(Refusal::Unsettled));
    assert_eq!(account.seal_for(i64::MAX), Some(i64::MAX));
    account.acknowledge();
    assert_eq!(account.add(i64::MAX), Ok(()));
    assert_eq!(account.position(), MAX - 1);
}

/// Refunded units above a lowered limit are gone.
#[test]
fn a_limit_below_what_was_admitted_leaves_nothing_to_take_again() {
    for is_striped in [false, true] {
        let counter = Counter::new(Kind::Quota { limit: 100 }, Promise::Relaxed { cap: 1000 }, 0);
        if is_striped {
            counter.stripe();
        }
        counter.take(100).unwrap();
        counter.set_kind(Kind::Quota { limit: 50 });
        assert_eq!(counter.refund(10), Ok(10));
        assert_eq!(counter.take(1), Err(Refusal::Exhausted));
        assert_eq!(counter.refund(41), Ok(41));
        assert_eq!((counter.take(1), counter.take(1)), (Ok(()), Err(Refusal::Exhausted)));
    }
}

#[test]
fn a_seal_for_a_move_that_has_found_room_meanwhile_keeps_the_promise() {
    for (promise, limit) in [(Promise::Exact { block: 64 }, 1_000), (Promise::Relaxed { cap: 64 }, 1_000)] {
        let mut account = Account::new(Kind::Quota { limit }, promise, 500);
        // A take of 9 was refused at the edge; since then, other callers have refunded as much as
        // the promise allows.
        while account.refund(1).is_ok() {
            if account.uncommitted() == 64 {
                break;
            }
        }
        assert_eq!((account.position(), account.take(9)), (436, Ok(())));
        assert_eq!(account.refund(9), Ok(9));
        if let Some(sealed) = account.seal_for(9) {
            assert!((-64..=0).contains(&sealed), "{sealed}");
            account.acknowledge();
        }
        assert!(account.uncommitted() <= 64, "{account:?}");
    }
}

#[test]
fn from_the_lowest_position_as_much_is_available_as_a_take_can_ask_for() {
    let mut account = Account::new(Kind::Quota { limit: MAX }, Promise::Relaxed { cap: 1 }, -MAX);
    assert_eq!(account.available(), Some(MAX));
    account.seal_for(MAX).expect("a record");
    account.acknowledge();
    assert_eq!((account.position(), account.available()), (-MAX, Some(MAX)));
}

#[test]
fn a_refund_reaches_what_was_committed() {
    let mut account = Account::new(Kind::Quota { limit: 10 }, Promise::Relaxed { cap: 100 }, 0);
    account.take(8).unwrap();
    account.seal();
    account.acknowledge();
    assert_eq!(account.refund(20), Ok(8));
    assert_eq!((account.durable(), account.open(), account.available()), (8, -8, Some(10)));
}

#[test]
fn churn_around_an_exact_position_reserves_nothing_anew() {
    let mut account = Account::new(Kind::Quota { limit: 1000 }, Promise::Exact { block: 64 }, 0);
    let mut reservations = 0;
    for round in 0..10_000 {
        let churn = |account: &mut Account| match round % 2 {
            0 => account.take(10),
            _ => account.refund(10).map(|_| ()),
        };
        if churn(&mut account).is_err() {
            reservations += 1;
            account.seal_for(if round % 2 == 0 { 10 } else { -10 });
            account.acknowledge();
            churn(&mut account).unwrap();
        }
    }
    assert_eq!(reservations, 1);
}

#[test]
fn from_one_end_of_the_range_to_the_other_takes_more_than_one_commit() {
    let cap = (MAX - 1) as u64;
    let mut account = Account::resume(Kind::Plain, Promise::Relaxed { cap }, 1, MAX - 1);
    let mut commits = 0;
    while account.add(i64::MIN) == Err(Refusal::Unsettled) {
        assert!(account.seal_for(i64::MIN).is_some());
        account.acknowledge();
        commits += 1;
        assert!(commits < 5, "{account:?}");
    }
    assert_eq!(account.position(), -MAX);
}
