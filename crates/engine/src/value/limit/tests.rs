use super::*;
use proptest::prelude::*;
use std::time::Duration;

fn policy() -> impl Strategy<Value = Policy> {
    let algorithm = prop::sample::select(&Algorithm::ALL[..]);
    let numbers = prop_oneof![1..20_u64, 1..=i64::MAX as u64];
    (algorithm, numbers.clone(), prop_oneof![1..100_000_u64, any::<u64>()], numbers)
        .prop_filter_map("a limiter that there can be", |(algorithm, limit, period_ms, burst)| {
            Policy::new(algorithm, limit, period_ms, burst).ok()
        })
}

/// Seconds that pass, or by which the clock steps back, and the units requested then.
fn steps() -> impl Strategy<Value = Vec<(i64, u64)>> {
    proptest::collection::vec((-3600..3600_i64, prop_oneof![0..10_u64, any::<u64>()]), 0..30)
}

/// Small enough that random steps reach the bound.
const LEASES: usize = 6;

fn form(limit: &Limit) -> Vec<u8> {
    let mut form = Vec::new();
    limit.encode(&mut form);
    form
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_was_encoded_decodes_to_the_same(policy in policy(), is_kept: bool, steps in steps()) {
        let mut limit = Limit::new(policy, is_kept);
        let mut now = Time::from_secs(1_767_225_600);
        for (seconds, amount) in steps {
            let step = Duration::from_secs(seconds.unsigned_abs());
            now = if seconds < 0 { now - step } else { now + step };
            let asked = limit.peek(policy, now, amount, LEASES);
            let before = limit.clone();
            let decision = limit.take(policy, now, amount, LEASES);
            prop_assert_eq!(decision.is_allowed, asked.is_allowed);
            prop_assert!(decision.is_allowed || limit == before, "a refusal changes nothing");
            let form = form(&limit);
            let mut bytes = Cursor::new(&form);
            let decoded = Limit::decode(&mut bytes).expect("what was encoded decodes");
            prop_assert!(bytes.is_empty());
            prop_assert_eq!(decoded.digest(), limit.digest());
            prop_assert_eq!(decoded, limit.clone());
        }
    }

    #[test]
    fn an_idle_limit_answers_as_a_new_one(policy in policy(), steps in steps()) {
        let mut limit = Limit::new(policy, false);
        let mut now = Time::from_secs(1_767_225_600);
        for (seconds, amount) in steps {
            now = now + Duration::from_secs(seconds.unsigned_abs());
            limit.take(policy, now, amount, LEASES);
        }
        let idle = Time::from_millis(limit.idle_at_ms()).max(now);
        prop_assume!(idle < Time::MAX);
        for amount in [0, 1, policy.burst(), policy.burst().saturating_add(1), u64::MAX] {
            let (used, unused) = (limit.clone(), Limit::new(policy, false));
            prop_assert_eq!(used.peek(policy, idle, amount, LEASES), unused.peek(policy, idle, amount, LEASES));
        }
    }

    #[test]
    fn any_bytes_are_a_limiter_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Some(mut limit) = Limit::decode(&mut Cursor::new(&bytes)) {
            let now = Time::from_secs(1_767_225_600);
            let policy = limit.policy();
            let asked = limit.peek(policy, now, 1, LEASES);
            prop_assert_eq!(limit.take(policy, now, 1, LEASES).is_allowed, asked.is_allowed);
            limit.refund(now, u64::MAX);
            let lease = limit.leases().map_or(0, Leases::last_id);
            limit.renew(policy, now, lease);
            limit.release(now, &[lease]);
            let form = form(&limit);
            let decoded = Limit::decode(&mut Cursor::new(&form));
            prop_assert_eq!(decoded.as_ref(), Some(&limit));
            let seen = |limit: &Limit| (limit.idle_at_ms(), limit.noted(), limit.digest());
            prop_assert_eq!(decoded.as_ref().map(seen), Some(seen(&limit)));
        }
    }
}

/// A step on leases, and the milliseconds that pass before it or by which the clock steps back.
#[derive(Debug, Clone)]
enum Step {
    Acquire {
        amount: u64,
        ttl_ms: u64,
    },
    /// The lease that was granted this many grants ago.
    Renew {
        ago: usize,
        ttl_ms: u64,
    },
    Release {
        ago: usize,
    },
    Reset,
}

fn lease_steps() -> impl Strategy<Value = Vec<(i64, Step)>> {
    let step = prop_oneof![
        8 => (1..4_u64, 1..3000_u64).prop_map(|(amount, ttl_ms)| Step::Acquire { amount, ttl_ms }),
        4 => (0..6_usize, 1..3000_u64).prop_map(|(ago, ttl_ms)| Step::Renew { ago, ttl_ms }),
        4 => (0..6_usize).prop_map(|ago| Step::Release { ago }),
        1 => Just(Step::Reset),
    ];
    let passing = prop_oneof![6 => 0..800_i64, 1 => -2000..0_i64, 1 => Just(4000_i64)];
    proptest::collection::vec((passing, step), 0..60)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A holder keeps its lease until its end, the limit always holds, and no ID is granted twice.
    #[test]
    fn leases_are_a_map_of_names(limit_units in 1..9_u64, steps in lease_steps()) {
        let policy = Policy::new(Algorithm::Concurrency, limit_units, 1000, limit_units).expect("a policy");
        let mut limit = Limit::new(policy, true);
        let mut model = std::collections::BTreeMap::<u64, (u64, u64)>::new();
        let (mut now_ms, mut names) = (1_767_225_600_000_i64, vec![0_u64]);
        for (passed_ms, step) in steps {
            now_ms += passed_ms;
            let (now_ms, now) = (now_ms as u64, Time::from_millis(now_ms as u64));
            let named = |ago: usize| names[names.len().saturating_sub(1 + ago)];
            let live = |model: &std::collections::BTreeMap<u64, (u64, u64)>| -> Vec<(u64, u64)> {
                model.iter().filter(|(_, (_, end))| *end > now_ms).map(|(id, (units, _))| (*id, *units)).collect()
            };
            match step {
                Step::Acquire { amount, ttl_ms } => {
                    let held = live(&model);
                    let used: u64 = held.iter().map(|(_, units)| units).sum();
                    let terms = policy.with_period(ttl_ms).expect("a policy");
                    let decision = limit.take(terms, now, amount, LEASES);
                    prop_assert_eq!(decision.is_allowed, used + amount <= limit_units && held.len() < LEASES);
                    if decision.is_allowed {
                        let name = limit.leases().expect("it has leases").last_id();
                        prop_assert!(name > *names.last().expect("there is one"));
                        names.push(name);
                        model.retain(|_, (_, end)| *end > now_ms);
                        model.insert(name, (amount, now_ms + ttl_ms));
                    } else if let Some(wait) = decision.retry_after {
                        let then = now + wait;
                        prop_assert!(limit.peek(terms, then, amount, LEASES).is_allowed);
                    }
                }
                Step::Renew { ago, ttl_ms } => {
                    let lease = model.get_mut(&named(ago)).filter(|(_, end)| *end > now_ms);
                    let terms = policy.with_period(ttl_ms).expect("a policy");
                    let renewed = limit.renew(terms, now, named(ago)).map(|lease| lease.end_ns / 1_000_000);
                    let expected = lease.map(|(_, end)| {
                        *end = (*end).max(now_ms + ttl_ms);
                        *end
                    });
                    prop_assert_eq!(renewed, expected);
                }
                Step::Release { ago } => {
                    // Ended leases are dropped at every change, for good.
                    model.retain(|_, (_, end)| *end > now_ms);
                    let was_live = model.remove(&named(ago)).is_some();
                    prop_assert_eq!(limit.release(now, &[named(ago)]), usize::from(was_live));
                }
                Step::Reset => {
                    limit.reset();
                    model.clear();
                }
            }
            let mut shown: Vec<(u64, u64)> =
                limit.leases().expect("it has leases").live(now).map(|lease| (lease.id, lease.units)).collect();
            shown.sort_unstable();
            prop_assert_eq!(shown, live(&model));
            let form = form(&limit);
            let decoded = Limit::decode(&mut Cursor::new(&form));
            prop_assert_eq!(decoded.as_ref(), Some(&limit));
        }
    }
}

#[test]
fn names_that_have_run_out_are_not_given_again() {
    let policy = Policy::new(Algorithm::Concurrency, 5, 1000, 5).expect("a policy");
    let mut form = form(&Limit::new(policy, true));
    form.truncate(form.len() - 2);
    put_numbers(&mut form, [i64::MAX as u64 - 1, 0]);
    let mut limit = Limit::decode(&mut Cursor::new(&form)).expect("a limiter");
    let now = Time::from_secs(1_767_225_600);
    assert!(limit.take(policy, now, 1, LEASES).is_allowed);
    let refused = limit.take(policy, now, 1, LEASES);
    assert_eq!((refused.is_allowed, refused.retry_after), (false, None));
    assert_eq!(limit.leases().map(Leases::last_id), Some(i64::MAX as u64));
}

#[test]
fn a_limiter_takes_little() {
    assert!(size_of::<Limit>() <= 72, "{}", size_of::<Limit>());
    let gcra = Limit::new(Policy::new(Algorithm::Gcra, 10, 1000, 10).expect("a policy"), false);
    assert_eq!(form(&gcra).len(), 7, "in a snapshot");
}
