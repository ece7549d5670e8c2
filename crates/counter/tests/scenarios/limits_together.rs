//! Limits of all kinds for one request: rates, words that threads share, leases. Either all count
//! it or none does.

use proptest::prelude::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tidemark_counter::limiter::{
    Acquire, Concurrency, FixedWindow, Gcra, Lease, Limiter, Lock, Rate, Request, Shared, SharedConcurrency,
    SharedGcra, Time, check_all, check_all_shared,
};

const SECOND: Duration = Duration::from_secs(1);

fn per_second(limit: u64, count: u64) -> Gcra {
    Gcra::new(limit, Rate::new(count, SECOND).unwrap()).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    /// Asks all limits: the name of the lease, and the amounts.
    Ask(u64, [u64; 4]),
    Release(u64),
    Renew(u64),
    Alone(u64),
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let step = prop_oneof![
        8 => (0..4_u64, prop::array::uniform4(0..6_u64)).prop_map(|(id, amounts)| Step::Ask(id, amounts)),
        2 => (0..4_u64).prop_map(Step::Release),
        1 => (0..4_u64).prop_map(Step::Renew),
        2 => (0..4_u64).prop_map(Step::Alone),
    ];
    prop::collection::vec((0..900_u64, step), 1..60)
}

#[derive(Debug, Clone, PartialEq)]
struct States {
    fast: u64,
    slow: u64,
    window: <FixedWindow as Limiter>::State,
    leases: Vec<Lease>,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The model asks each limit alone, and restores everything at the first refusal.
    #[test]
    fn whatever_their_kinds_all_count_or_none_does(steps in steps(), order in prop::array::uniform4(any::<u8>())) {
        let (fast, slow) = (per_second(9, 4), per_second(12, 2));
        let window = FixedWindow::new(14, SECOND * 3).unwrap();
        let leases = Concurrency::new(7, SECOND * 2).unwrap().with_leases(3);
        let mut states = States { fast: fast.fresh(), slow: slow.fresh(), window: window.fresh(), leases: Vec::new() };
        let shared = (
            SharedGcra::default(),
            SharedGcra::default(),
            Shared::new(window.clone()),
            SharedConcurrency::new(leases.clone()),
        );
        // The order in which the shared limits are named.
        let mut names = [0, 1, 2, 3];
        names.sort_by_key(|name: &usize| order[*name]);
        let mut now = Time::from_secs(1000);
        for (millis, step) in steps {
            now = now + Duration::from_millis(millis);
            match step {
                Step::Release(id) => {
                    prop_assert_eq!(leases.release(&mut states.leases, now, id), shared.3.release(now, id));
                }
                Step::Renew(id) => {
                    prop_assert_eq!(leases.renew(&mut states.leases, now, id), shared.3.renew(now, id));
                }
                Step::Alone(amount) => {
                    prop_assert_eq!(fast.check(&mut states.fast, now, amount), shared.0.check(&fast, now, amount));
                }
                Step::Ask(id, amounts) => {
                    let mut model = states.clone();
                    let single = [
                        fast.check(&mut model.fast, now, amounts[0]),
                        slow.check(&mut model.slow, now, amounts[1]),
                        window.check(&mut model.window, now, amounts[2]),
                        leases.acquire(&mut model.leases, now, id, amounts[3]),
                    ];
                    let is_allowed = single.iter().all(|decision| decision.is_allowed);
                    let expected = if is_allowed { model } else { states.clone() };
                    let verdict = check_all(now, &mut [
                        &mut Request { limiter: &fast, state: &mut states.fast, amount: amounts[0] },
                        &mut Request { limiter: &slow, state: &mut states.slow, amount: amounts[1] },
                        &mut Request { limiter: &window, state: &mut states.window, amount: amounts[2] },
                        &mut Acquire { limiter: &leases, leases: &mut states.leases, id, amount: amounts[3] },
                    ]);
                    prop_assert_eq!(verdict.is_allowed(), is_allowed);
                    prop_assert_eq!(&states, &expected);
                    let longest = single.map(|decision| decision.retry_after);
                    let longest = longest.into_iter().reduce(|a, b| Some(a?.max(b?))).flatten();
                    prop_assert_eq!(verdict.retry_after, longest);

                    let (by_fast, by_slow, lease) = (shared.0.by(&fast), shared.1.by(&slow), shared.3.under(id));
                    let all: [(&dyn Lock, u64); 4] = [
                        (&by_fast, amounts[0]),
                        (&by_slow, amounts[1]),
                        (&shared.2, amounts[2]),
                        (&lease, amounts[3]),
                    ];
                    let together = check_all_shared(now, names.map(|name| all[name]));
                    prop_assert_eq!(together.is_allowed(), is_allowed);
                    prop_assert_eq!((together.retry_after, together.remaining), (verdict.retry_after, verdict.remaining));
                }
            }
            let of_shared = States {
                fast: shared.0.state(),
                slow: shared.1.state(),
                window: shared.2.state(),
                leases: shared.3.leases(),
            };
            prop_assert_eq!(&of_shared, &states);
        }
    }
}

/// Threads ask for all three in different orders, while other threads ask for one word alone.
#[test]
fn threads_are_admitted_as_much_as_there_is_and_never_half() {
    const THREADS: u64 = 4;
    let now = Time::from_secs(1000);
    // No units come back during the test.
    let (wide, narrow) = (per_second(6_000, 1), per_second(4_000, 1));
    let (tenant, user) = (SharedGcra::default(), SharedGcra::default());
    let exports = SharedConcurrency::new(Concurrency::new(3_000, SECOND).unwrap().with_leases(100_000));
    let (with_tenant, with_user, with_lease) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let together = Barrier::new(THREADS as usize);
    thread::scope(|threads| {
        for thread in 0..THREADS {
            let (tenant, user, exports, wide, narrow) = (&tenant, &user, &exports, &wide, &narrow);
            let (with_tenant, with_user, with_lease) = (&with_tenant, &with_user, &with_lease);
            let together = &together;
            threads.spawn(move || {
                together.wait();
                for turn in 0..2_500 {
                    let id = thread * 1_000_000 + turn;
                    let (of_tenant, of_user, lease) = (tenant.by(wide), user.by(narrow), exports.under(id));
                    let admitted = match (thread + turn) % 4 {
                        0 => {
                            let is_allowed = tenant.is_allowed(wide, now, 1);
                            with_tenant.fetch_add(u64::from(is_allowed), Ordering::Relaxed);
                            continue;
                        }
                        1 => check_all_shared(now, [(&of_user, 1), (&of_tenant, 1)])
                            .is_allowed()
                            .then_some(false),
                        2 => check_all_shared(now, [(&of_tenant, 1), (&lease, 1), (&of_user, 1)])
                            .is_allowed()
                            .then_some(true),
                        _ => check_all_shared(now, [(&lease, 1), (&of_user, 1), (&of_tenant, 1)])
                            .is_allowed()
                            .then_some(true),
                    };
                    if let Some(has_lease) = admitted {
                        with_tenant.fetch_add(1, Ordering::Relaxed);
                        with_user.fetch_add(1, Ordering::Relaxed);
                        with_lease.fetch_add(u64::from(has_lease), Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let counted = [with_tenant, with_user, with_lease].map(AtomicU64::into_inner);
    let left = [wide.peek(&tenant.state(), now, 1).remaining, narrow.peek(&user.state(), now, 1).remaining];
    assert_eq!([6_000 - left[0], 4_000 - left[1], exports.leases().len() as u64], counted);
    assert!(left.contains(&0), "more asked than there is: {left:?}");
}

#[test]
fn a_lease_that_another_limit_refuses_was_never_there() {
    let now = Time::from_secs(1000);
    let rule = per_second(1, 1);
    let (user, exports) =
        (SharedGcra::default(), SharedConcurrency::new(Concurrency::new(2, SECOND).unwrap()));
    let ask =
        |id, units| check_all_shared(now, [(&exports.under(id) as &dyn Lock, units), (&user.by(&rule), 1)]);
    assert!(ask(7, 1).is_allowed());
    let before = exports.leases();
    assert_eq!((ask(8, 1).decisive, ask(8, 1).retry_after), (Some(1), Some(SECOND)));
    // Nor does the refused request replace an existing lease.
    assert!(!ask(7, 2).is_allowed());
    assert_eq!(exports.leases(), before);
    assert_eq!(ask(9, 3).retry_after, None, "more than there ever is");
}

#[test]
fn a_word_that_is_named_twice_is_asked_for_both_together() {
    let now = Time::from_secs(1000);
    let rule = per_second(10, 1);
    let key = SharedGcra::default();
    assert!(check_all_shared(now, [(&key.by(&rule), 3), (&key.by(&rule), 4)]).is_allowed());
    assert!(!check_all_shared(now, [(&key.by(&rule), 2), (&key.by(&rule), 2)]).is_allowed());
    assert_eq!(key.peek(&rule, now, 1).remaining, 3);
}

#[test]
fn a_stored_state_beyond_all_times_is_a_state_like_others() {
    let (rule, now) = (per_second(10, 1), Time::from_secs(1000));
    let key = SharedGcra::new(u64::MAX);
    assert!(!key.check(&rule, now, 1).is_allowed);
    assert!(!check_all_shared(now, [(&key.by(&rule), 1)]).is_allowed());
}
