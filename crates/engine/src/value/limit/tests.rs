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

/// Seconds that pass, or run back, and what is asked for then.
fn steps() -> impl Strategy<Value = Vec<(i64, u64)>> {
    proptest::collection::vec((-3600..3600_i64, prop_oneof![0..10_u64, any::<u64>()]), 0..30)
}

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
            let asked = limit.peek(policy, now, amount);
            let before = limit.clone();
            let decision = limit.take(now, amount);
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
    fn when_it_is_idle_it_answers_as_one_that_nobody_has_used(policy in policy(), steps in steps()) {
        let mut limit = Limit::new(policy, false);
        let mut now = Time::from_secs(1_767_225_600);
        for (seconds, amount) in steps {
            now = now + Duration::from_secs(seconds.unsigned_abs());
            limit.take(now, amount);
        }
        let idle = Time::from_millis(limit.idle_at_ms()).max(now);
        prop_assume!(idle < Time::MAX);
        for amount in [0, 1, policy.burst(), policy.burst().saturating_add(1), u64::MAX] {
            let (used, unused) = (limit.clone(), Limit::new(policy, false));
            prop_assert_eq!(used.peek(policy, idle, amount), unused.peek(policy, idle, amount));
        }
    }

    #[test]
    fn any_bytes_are_a_limiter_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
        if let Some(mut limit) = Limit::decode(&mut Cursor::new(&bytes)) {
            let now = Time::from_secs(1_767_225_600);
            let policy = limit.policy();
            let _ = limit.peek(policy, now, 1);
            limit.take(now, 1);
            limit.refund(now, u64::MAX);
            let _ = (limit.idle_at_ms(), limit.noted(), limit.digest());
        }
    }
}

#[test]
fn a_limiter_takes_little() {
    assert!(size_of::<Limit>() <= 72, "{}", size_of::<Limit>());
    let gcra = Limit::new(Policy::new(Algorithm::Gcra, 10, 1000, 10).expect("a policy"), false);
    assert_eq!(form(&gcra).len(), 7, "in a snapshot");
}
