//! Limits of concurrent use: never more than the limit, leases that expire, exact waits.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::time::Duration;
use tidemark_counter::limiter::{Concurrency, Invalid, Lease, MAX_LIMIT, Time};

const TERM: Duration = Duration::from_secs(10);

fn at(secs: u64) -> Time {
    Time::from_secs(1_000_000 + secs)
}

#[test]
fn a_lease_ends_by_itself_and_not_a_nanosecond_earlier() {
    let limiter = Concurrency::new(3, TERM).unwrap();
    let mut leases = Vec::new();
    assert!(limiter.acquire(&mut leases, at(0), 1, 2).is_allowed);
    assert!(limiter.acquire(&mut leases, at(4), 2, 1).is_allowed);

    let refused = limiter.acquire(&mut leases, at(5), 3, 1);
    assert_eq!((refused.is_allowed, refused.remaining), (false, 0));
    assert_eq!(refused.retry_after, Some(Duration::from_secs(5)));
    assert_eq!(refused.reset_after, Duration::from_secs(9));
    let nanosecond = Duration::from_nanos(1);
    assert!(!limiter.peek(&leases, at(10) - nanosecond, 3, 1).is_allowed);
    assert!(limiter.acquire(&mut leases, at(10), 3, 2).is_allowed);
    assert_eq!(limiter.acquire(&mut leases, at(10), 4, 3).retry_after, Some(TERM));
    assert_eq!(limiter.acquire(&mut leases, at(10), 4, 4).retry_after, None);
}

#[test]
fn a_holder_that_renews_in_time_keeps_the_lease_and_a_late_one_has_lost_it() {
    let limiter = Concurrency::new(1, TERM).unwrap();
    let mut leases = Vec::new();
    assert!(limiter.acquire(&mut leases, at(0), 1, 1).is_allowed);
    assert!(limiter.renew(&mut leases, at(9), 1));
    assert!(!limiter.acquire(&mut leases, at(18), 2, 1).is_allowed);
    assert!(!limiter.renew(&mut leases, at(19), 1));
    assert!(limiter.acquire(&mut leases, at(19), 2, 1).is_allowed);
    assert_eq!(limiter.release(&mut leases, at(19), 1), 0, "it is not the other's that is released");
    assert_eq!(limiter.release(&mut leases, at(19), 2), 1);
    assert_eq!(limiter.release(&mut leases, at(19), 2), 0);
    assert!(leases.is_empty());
}

#[test]
fn acquiring_again_replaces_the_lease_or_leaves_it_as_it_was() {
    let limiter = Concurrency::new(5, TERM).unwrap();
    let mut leases = Vec::new();
    assert!(limiter.acquire(&mut leases, at(0), 1, 3).is_allowed);
    assert!(limiter.acquire(&mut leases, at(0), 2, 1).is_allowed);
    assert_eq!(limiter.acquire(&mut leases, at(1), 1, 4).remaining, 0);
    let before = leases.clone();
    assert!(!limiter.acquire(&mut leases, at(2), 1, 5).is_allowed);
    assert_eq!(leases, before);
    assert_eq!(limiter.acquire(&mut leases, at(2), 1, 1).remaining, 3);
}

#[test]
fn the_number_of_leases_is_bounded() {
    let limiter = Concurrency::new(100, TERM).unwrap().with_leases(2);
    let mut leases = Vec::new();
    assert!(limiter.acquire(&mut leases, at(0), 1, 1).is_allowed);
    assert!(limiter.acquire(&mut leases, at(3), 2, 1).is_allowed);
    let refused = limiter.acquire(&mut leases, at(4), 3, 1);
    assert_eq!((refused.remaining, refused.retry_after), (0, Some(Duration::from_secs(6))));
    assert!(limiter.acquire(&mut leases, at(4), 2, 50).is_allowed, "a name that has a lease needs no other");
}

#[test]
fn a_clock_that_goes_back_admits_no_more_and_takes_no_lease_away() {
    let limiter = Concurrency::new(1, TERM).unwrap();
    let mut leases = Vec::new();
    assert!(limiter.acquire(&mut leases, at(5000), 1, 1).is_allowed);
    let refused = limiter.acquire(&mut leases, at(1400), 2, 1);
    assert_eq!(refused.retry_after, Some(Duration::from_secs(3610)));
    assert!(limiter.renew(&mut leases, at(1400), 1));
    assert!(!limiter.peek(&leases, at(5009), 2, 1).is_allowed);
}

#[test]
fn leases_of_several_terms_end_each_at_its_time_whatever_the_term_is_then() {
    let long = Concurrency::new(2, TERM).unwrap();
    let short = Concurrency::new(2, Duration::from_secs(3)).unwrap();
    let mut leases = Vec::new();
    assert!(long.acquire(&mut leases, at(0), 1, 1).is_allowed);
    assert!(short.acquire(&mut leases, at(1), 2, 1).is_allowed);
    assert_eq!(
        leases.iter().map(|lease| (lease.id, lease.end())).collect::<Vec<_>>(),
        [(2, at(4)), (1, at(10))]
    );
    assert_eq!(short.acquire(&mut leases, at(1), 3, 1).retry_after, Some(Duration::from_secs(3)));
    assert_eq!(short.acquire(&mut leases, at(1), 3, 2).retry_after, Some(Duration::from_secs(9)));
    // A shorter term does not end an older, longer lease.
    assert!(short.renew(&mut leases, at(2), 1));
    assert_eq!(short.idle_at(&leases), at(10));
    assert!(long.renew(&mut leases, at(2), 2));
    assert_eq!(
        leases.iter().map(|lease| (lease.id, lease.left(at(2)))).collect::<Vec<_>>(),
        [(1, Duration::from_secs(8)), (2, TERM),]
    );
}

#[test]
fn there_is_no_limit_of_nothing_and_no_lease_of_no_time() {
    assert_eq!(Concurrency::new(0, TERM), Err(Invalid::Limit { limit: 0, max: MAX_LIMIT }));
    assert_eq!(Concurrency::new(1, Duration::ZERO), Err(Invalid::Period));
}

#[derive(Debug, Clone)]
enum Step {
    Wait(Duration),
    Back(Duration),
    Acquire { id: u64, amount: u64 },
    Renew(u64),
    Release(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..5_000_u64).prop_map(|millis| Step::Wait(Duration::from_millis(millis))),
        1 => Just(Step::Wait(Duration::from_hours(1))),
        1 => prop_oneof![1..5_000_u64, Just(3_600_000)].prop_map(|millis| Step::Back(Duration::from_millis(millis))),
        8 => (0..8_u64, 0..9_u64).prop_map(|(id, amount)| Step::Acquire { id, amount }),
        2 => (0..8_u64).prop_map(Step::Renew),
        3 => (0..8_u64).prop_map(Step::Release),
    ];
    prop::collection::vec(step, 1..80)
}

/// A simple, slow model: for each name, the units it holds and since when.
type Model = BTreeMap<u64, (Time, u64)>;

fn live(model: &Model, now: Time, but: Option<u64>) -> (usize, u64) {
    let live = model.iter().filter(|(id, (since, _))| Some(**id) != but && now.since(*since) < TERM);
    live.fold((0, 0), |(count, units), (_, (_, more))| (count + 1, units + more))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn it_does_what_a_map_of_leases_does(limit in 1..9_u64, leases_max in 1..6_usize, steps in steps()) {
        let limiter = Concurrency::new(limit, TERM).unwrap().with_leases(leases_max);
        let mut leases = Vec::new();
        let mut model = Model::new();
        let mut now = at(0);
        for step in steps {
            match step {
                Step::Wait(time) => now = now + time,
                Step::Back(time) => now = now - time,
                Step::Acquire { id, amount } => {
                    let before = leases.clone();
                    let decision = limiter.acquire(&mut leases, now, id, amount);
                    let (count, units) = live(&model, now, Some(id));
                    let expected = amount == 0 || count < leases_max && units + amount <= limit;
                    prop_assert_eq!(decision.is_allowed, expected);
                    if decision.is_allowed && amount > 0 {
                        model.retain(|_, (since, _)| now.since(*since) < TERM);
                        model.insert(id, (now, amount));
                    } else {
                        prop_assert_eq!(&leases, &before);
                    }
                    match decision.retry_after {
                        None => prop_assert!(amount > limit),
                        Some(Duration::ZERO) => prop_assert!(decision.is_allowed),
                        Some(wait) => {
                            prop_assert!(limiter.peek(&leases, now + wait, id, amount).is_allowed);
                            let early = limiter.peek(&leases, now + wait - Duration::from_nanos(1), id, amount);
                            prop_assert_eq!(early.retry_after, Some(Duration::from_nanos(1)));
                        }
                    }
                    prop_assert_eq!(limiter.peek(&leases, now + decision.reset_after, 99, limit).remaining, limit);
                }
                Step::Renew(id) => {
                    let lease = model.get_mut(&id).filter(|(since, _)| now.since(*since) < TERM);
                    prop_assert_eq!(limiter.renew(&mut leases, now, id), lease.is_some());
                    if let Some((since, _)) = lease {
                        *since = now.max(*since);
                    }
                }
                Step::Release(id) => {
                    let units = model.remove(&id).map_or(0, |(since, units)| if now.since(since) < TERM { units } else { 0 });
                    prop_assert_eq!(limiter.release(&mut leases, now, id), units);
                }
            }
            let (count, units) = live(&model, now, None);
            prop_assert!(units <= limit && count <= leases_max);
            let remaining = if count == leases_max { 0 } else { limit - units };
            prop_assert_eq!(limiter.peek(&leases, now, 99, 1).remaining, remaining);
            prop_assert!(leases.len() <= leases_max);
        }
    }

    /// Any state that can be encoded, any time, any amount.
    #[test]
    fn nothing_overflows(
        limit in 1..=MAX_LIMIT, state in prop::collection::vec((0..4_u64, any::<u64>(), any::<u64>()), 0..6),
        now: u64, amount: u64,
    ) {
        let limiter = Concurrency::new(limit, TERM).unwrap().with_leases(3);
        let lease = |(id, units, end_ns)| Lease { id, units, end_ns };
        let mut leases: Vec<_> = state.into_iter().map(lease).collect();
        leases.sort_by_key(|lease| lease.end_ns);
        let now = Time::from_nanos(now);
        let peeked = limiter.peek(&leases, now, 1, amount);
        let decision = limiter.acquire(&mut leases, now, 1, amount);
        prop_assert_eq!(peeked.is_allowed, decision.is_allowed);
        prop_assert_eq!(decision.retry_after.is_none(), amount > limit);
        let was_renewed = limiter.renew(&mut leases, now, 1);
        prop_assert!(was_renewed || !decision.is_allowed || amount == 0);
        limiter.release(&mut leases, now, 1);
        prop_assert!(limiter.peek(&leases, now, 1, limit).remaining <= limit);
    }
}
