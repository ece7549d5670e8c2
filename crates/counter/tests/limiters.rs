//! What holds for every limiter, whatever its rule: exact waits, refusals that change nothing, and no interval of time that admits more
//! than the limiter's documentation says. Random schedules, with clocks that step, against a list of what was admitted.

use proptest::prelude::*;
use std::time::Duration;
use tidemark_counter::limiter::{Decision, Gcra, Limiter, Rate, Time};

const HOUR: Duration = Duration::from_hours(1);
/// When schedules begin.
const START: Time = Time::from_secs(1_700_000_000);

/// What happens next.
#[derive(Debug, Clone)]
enum Step {
    /// So much time passes, in thousandths of the limiter's own time.
    Wait(u64),
    /// Nanoseconds pass.
    Nanos(u64),
    /// The clock is set forward or back.
    Forward(Duration),
    Back(Duration),
    /// Somebody comes, for a part of the limit in hundredths, and one unit more.
    Check(u64),
}

fn steps(with_clock: bool) -> impl Strategy<Value = Vec<Step>> {
    let clock = u32::from(with_clock);
    let step = prop_oneof![
        3 => (0..1500_u64).prop_map(Step::Wait),
        1 => (0..3_u64).prop_map(Step::Nanos),
        clock => prop_oneof![Just(HOUR), Just(Duration::from_millis(1)), Just(Duration::from_nanos(1))].prop_map(Step::Forward),
        clock => prop_oneof![Just(HOUR), Just(Duration::from_millis(1)), Just(Duration::from_nanos(1))].prop_map(Step::Back),
        8 => prop_oneof![Just(0), 0..40_u64, 90..110_u64].prop_map(Step::Check),
    ];
    prop::collection::vec(step, 1..60)
}

/// Runs a schedule and hands every request to `each`, with the state before it. `scale` is the limiter's own time.
fn run<L: Limiter>(
    limiter: &L,
    limit: u64,
    scale: Duration,
    steps: &[Step],
    mut each: impl FnMut(&L::State, &L::State, Time, u64, Decision),
) {
    let mut state = limiter.fresh();
    let mut now = START;
    for step in steps {
        match step {
            Step::Wait(thousandths) => {
                let nanos = u128::from(*thousandths) * scale.as_nanos() / 1000;
                now = now + Duration::from_nanos(u64::try_from(nanos).unwrap());
            }
            Step::Nanos(nanos) => now = now + Duration::from_nanos(*nanos),
            Step::Forward(step) => now = now + *step,
            Step::Back(step) => now = now - *step,
            Step::Check(hundredths) => {
                let amount = u64::try_from(u128::from(limit) * u128::from(*hundredths) / 100).unwrap() + 1;
                let before = state.clone();
                let peeked = limiter.peek(&state, now, amount);
                assert_eq!(state, before, "a peek changes nothing");
                let decision = limiter.check(&mut state, now, amount);
                assert_eq!(decision.is_allowed, peeked.is_allowed);
                assert_eq!(decision.retry_after, peeked.retry_after);
                each(&before, &state, now, amount, decision);
            }
        }
    }
}

/// A refusal changes nothing; its wait is exact to the nanosecond; a key is as new exactly when it says.
fn check_answers<L: Limiter>(limiter: &L, limit: u64, scale: Duration, steps: &[Step]) {
    run(limiter, limit, scale, steps, |before, after, now, amount, decision| {
        assert_eq!(decision.limit, limit);
        assert!(decision.remaining <= limit);
        assert!(limiter.peek(after, now, 0).is_allowed);
        assert_eq!(limiter.peek(after, now, 0).remaining, decision.remaining);
        assert_eq!(decision.reset_after, limiter.idle_at(after).since(now));
        let reset = limiter.peek(after, now + decision.reset_after, limit);
        assert!(reset.is_allowed, "the whole limit is there when it says so: {after:?}");
        let allowed = |amount| limiter.peek(after, now, amount).is_allowed;
        if decision.remaining > 0 {
            assert!(allowed(decision.remaining), "what remains can be taken: {after:?}");
        }
        assert!(!allowed(decision.remaining + 1), "and no more than that: {after:?}");
        if decision.is_allowed {
            assert_eq!(decision.retry_after, Some(Duration::ZERO));
            return;
        }
        assert_eq!(before, after, "a refusal changes nothing");
        match decision.retry_after {
            None => assert!(amount > limit),
            Some(wait) => {
                assert!(amount <= limit);
                assert!(!wait.is_zero());
                let at = now + wait;
                assert!(limiter.peek(after, at, amount).is_allowed, "allowed after {wait:?}: {after:?}");
                let early = limiter.peek(after, at - Duration::from_nanos(1), amount);
                assert!(!early.is_allowed, "not a nanosecond before {wait:?}: {after:?}");
                assert_eq!(early.retry_after, Some(Duration::from_nanos(1)));
            }
        }
    });
}

/// What was admitted, in order of its times.
fn admitted<L: Limiter>(limiter: &L, limit: u64, scale: Duration, steps: &[Step]) -> Vec<(Time, u64)> {
    let mut admitted = Vec::new();
    run(limiter, limit, scale, steps, |_, _, now, amount, decision| {
        if decision.is_allowed {
            admitted.push((now, amount));
        }
    });
    admitted.sort();
    admitted
}

/// Every interval that begins and ends with something admitted: its length in nanoseconds, and how much was admitted in it.
fn intervals(admitted: &[(Time, u64)]) -> impl Iterator<Item = (u128, u128)> {
    (0..admitted.len()).flat_map(move |from| {
        let mut sum = 0;
        admitted[from..].iter().map(move |(time, amount)| {
            sum += u128::from(*amount);
            (time.since(admitted[from].0).as_nanos(), sum)
        })
    })
}

/// A limit, a count and a period.
fn rates() -> impl Strategy<Value = (u64, u64, Duration)> {
    let limit = prop_oneof![1..20_u64, 1..1_000_000_u64];
    let count = prop_oneof![1..20_u64, 1..1_000_000_000_u64];
    let period = prop_oneof![
        Just(Duration::from_secs(1)),
        Just(Duration::from_mins(1)),
        Just(Duration::from_hours(365 * 24)),
        (1..1_000_000_u64).prop_map(Duration::from_nanos),
    ];
    (limit, count, period)
}

/// The time in which a unit comes back, or the whole limit.
fn scale(limit: u64, count: u64, period: Duration, whole: bool) -> Duration {
    let units = if whole { u128::from(limit) } else { 1 };
    Duration::from_nanos(
        u64::try_from(period.as_nanos() * units / u128::from(count)).unwrap().min(u64::MAX >> 12),
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn gcra_answers_exactly((limit, count, period) in rates(), whole: bool, steps in steps(true)) {
        let Ok(limiter) = Gcra::new(limit, Rate::new(count, period).unwrap()) else { return Ok(()) };
        check_answers(&limiter, limit, scale(limit, count, period, whole), &steps);
    }

    /// limit + rate × W, and what comes back in less than 2 ns if the rate has no whole nanoseconds: whatever the clock does.
    #[test]
    fn gcra_admits_no_more_than_its_rate((limit, count, period) in rates(), whole: bool, steps in steps(true)) {
        let Ok(limiter) = Gcra::new(limit, Rate::new(count, period).unwrap()) else { return Ok(()) };
        let is_whole = period.as_nanos() % u128::from(count) == 0;
        let slack = if is_whole { 0 } else { 2 };
        for (length, units) in intervals(&admitted(&limiter, limit, scale(limit, count, period, whole), &steps)) {
            let most = u128::from(limit) * period.as_nanos() + (length + slack) * u128::from(count);
            prop_assert!(units * period.as_nanos() <= most, "{units} in {length} ns");
        }
    }
}
