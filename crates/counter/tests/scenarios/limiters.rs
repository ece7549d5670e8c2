//! Properties of every limiter: exact waits, refusals that change nothing, and no interval of time
//! that admits more than the limiter's documentation states. Random schedules, with clocks that
//! step, are compared with a list of what was admitted.

use proptest::prelude::*;
use std::time::Duration;
use tidemark_counter::limiter::*;

const HOUR: Duration = Duration::from_hours(1);
/// Start of the schedules.
const START: Time = Time::from_secs(1_700_000_000);

/// One step of a schedule.
#[derive(Debug, Clone)]
enum Step {
    /// Time passes, in thousandths of the limiter's own time scale.
    Wait(u64),
    /// Nanoseconds pass.
    Nanos(u64),
    /// The clock is set forward or back.
    Forward(Duration),
    Back(Duration),
    /// A request, for a part of the limit in hundredths, and one unit more.
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

/// Runs a schedule and passes every request to `each`, with the state before it. `scale` is the
/// limiter's own time scale.
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

/// Checks that a refusal changes nothing, that its wait is exact to the nanosecond, and that a key
/// is fresh again exactly when it says so.
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

/// What was admitted, ordered by the times given.
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

/// Every interval that begins and ends with an admission: its length in nanoseconds, and the amount
/// admitted in it.
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

/// The time in which one unit comes back, or the whole limit.
fn scale(limit: u64, count: u64, period: Duration, whole: bool) -> Duration {
    let units = if whole { u128::from(limit) } else { 1 };
    let nanos = period.as_nanos() * units / u128::from(count);
    Duration::from_nanos(nanos.min(1 << 55) as u64)
}

/// What was admitted, with the times of a clock that stands still while the real one goes back.
fn admitted_without_steps<L: Limiter>(
    limiter: &L,
    limit: u64,
    scale: Duration,
    steps: &[Step],
) -> Vec<(Time, u64)> {
    let mut admitted: Vec<(Time, u64)> = Vec::new();
    run(limiter, limit, scale, steps, |_, _, now, amount, decision| {
        if decision.is_allowed {
            let last = admitted.last().map_or(Time::ZERO, |(time, _)| *time);
            admitted.push((now.max(last), amount));
        }
    });
    admitted
}

/// Checks that every interval of length *W* has at most limit + count × *W* / period.
fn check_rate(admitted: &[(Time, u64)], limit: u64, count: u64, period: Duration, slack: u128) {
    for (length, units) in intervals(admitted) {
        let most = u128::from(limit) * period.as_nanos() + (length + slack) * u128::from(count);
        assert!(units * period.as_nanos() <= most, "{units} in {length} ns");
    }
}

fn periods() -> impl Strategy<Value = (u64, Duration)> {
    let limit = prop_oneof![1..20_u64, 1..1_000_000_u64, Just(1 << 62)];
    let period = prop_oneof![
        Just(Duration::from_secs(1)),
        Just(Duration::from_mins(1)),
        Just(Duration::from_hours(24)),
        (1..1_000_000_u64).prop_map(Duration::from_nanos),
    ];
    (limit, period)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn gcra_answers_exactly((limit, count, period) in rates(), whole: bool, steps in steps(true)) {
        let Ok(limiter) = Gcra::new(limit, Rate::new(count, period).unwrap()) else { return Ok(()) };
        check_answers(&limiter, limit, scale(limit, count, period, whole), &steps);
    }

    /// At most limit + rate × W, plus what comes back in less than 2 ns if the rate has no whole
    /// nanoseconds, whatever the clock does.
    #[test]
    fn gcra_admits_no_more_than_its_rate((limit, count, period) in rates(), whole: bool, steps in steps(true)) {
        let Ok(limiter) = Gcra::new(limit, Rate::new(count, period).unwrap()) else { return Ok(()) };
        let is_whole = period.as_nanos().is_multiple_of(u128::from(count));
        let admitted = admitted(&limiter, limit, scale(limit, count, period, whole), &steps);
        check_rate(&admitted, limit, count, period, if is_whole { 0 } else { 2 });
    }

    #[test]
    fn buckets_answer_exactly((limit, count, period) in rates(), whole: bool, steps in steps(true)) {
        let rate = Rate::new(count, period).unwrap();
        let scale = scale(limit, count, period, whole);
        let Ok(bucket) = TokenBucket::new(limit, rate) else { return Ok(()) };
        check_answers(&bucket, limit, scale, &steps);
        check_answers(&LeakyBucket::new(limit, rate).unwrap(), limit, scale, &steps);
    }

    #[test]
    fn buckets_admit_no_more_than_their_rate((limit, count, period) in rates(), whole: bool, steps in steps(true)) {
        let rate = Rate::new(count, period).unwrap();
        let scale = scale(limit, count, period, whole);
        let Ok(bucket) = TokenBucket::new(limit, rate) else { return Ok(()) };
        let tokens = admitted_without_steps(&bucket, limit, scale, &steps);
        check_rate(&tokens, limit, count, period, 0);
        let leaky = LeakyBucket::new(limit, rate).unwrap();
        prop_assert_eq!(tokens, admitted_without_steps(&leaky, limit, scale, &steps));
    }

    /// With a clock that only moves forward the three rules are one, if GCRA has whole nanoseconds.
    #[test]
    fn gcra_and_buckets_say_the_same(
        limit in 1..1000_u64, count in 1..50_u64, interval in 1..10_000_u64, whole: bool, steps in steps(false),
    ) {
        let period = Duration::from_nanos(interval * count);
        let rate = Rate::new(count, period).unwrap();
        let scale = scale(limit, count, period, whole);
        let mut expected = Vec::new();
        run(&Gcra::new(limit, rate).unwrap(), limit, scale, &steps, |_, _, _, _, decision| expected.push(decision));
        let mut answers = Vec::new();
        run(&TokenBucket::new(limit, rate).unwrap(), limit, scale, &steps, |_, _, _, _, decision| answers.push(decision));
        for (answer, expected) in answers.iter().zip(&expected) {
            // A full bucket counts as always having been full.
            prop_assert_eq!(answer, expected);
        }
        prop_assert_eq!(answers.len(), expected.len());
    }

    #[test]
    fn fixed_windows_answer_exactly((limit, period) in periods(), offset in 0..100_u32, steps in steps(true)) {
        let limiter = FixedWindow::new(limit, period).unwrap().with_offset(period * offset / 100);
        check_answers(&limiter, limit, period, &steps);
    }

    /// No window of the clock admits more than the limit.
    #[test]
    fn fixed_windows_admit_no_more_than_the_limit((limit, period) in periods(), steps in steps(true)) {
        let limiter = FixedWindow::new(limit, period).unwrap();
        let mut windows = std::collections::HashMap::<_, u128>::new();
        for (time, units) in admitted_without_steps(&limiter, limit, period, &steps) {
            *windows.entry(u128::from(time.as_nanos()) / period.as_nanos()).or_default() += u128::from(units);
        }
        prop_assert!(windows.values().all(|units| *units <= u128::from(limit)), "{:?}", windows);
    }

    #[test]
    fn sliding_windows_answer_exactly((limit, period) in periods(), steps in steps(true)) {
        check_answers(&SlidingWindow::new(limit, period).unwrap(), limit, period, &steps);
    }

    #[test]
    fn sliding_windows_admit_no_more_than_they_say((limit, period) in periods(), steps in steps(true)) {
        let limiter = SlidingWindow::new(limit, period).unwrap();
        check_rate(&admitted_without_steps(&limiter, limit, period, &steps), limit, limit, period, 0);
    }

    #[test]
    fn sliding_logs_answer_exactly((limit, period) in periods(), entries in 1..20_usize, steps in steps(true)) {
        check_answers(&SlidingLog::new(limit, period).unwrap().with_entries(entries), limit, period, &steps);
    }

    /// No interval shorter than the period has more than the limit; while there is room for
    /// entries, no request that fits is refused.
    #[test]
    fn sliding_logs_admit_exactly_the_limit((limit, period) in periods(), steps in steps(true)) {
        let limiter = SlidingLog::new(limit, period).unwrap();
        for (length, units) in intervals(&admitted_without_steps(&limiter, limit, period, &steps)) {
            prop_assert!(length >= period.as_nanos() || units <= u128::from(limit), "{} in {} ns", units, length);
        }
        let mut model: Vec<(Time, u64)> = Vec::new();
        run(&limiter, limit, period, &steps, |_, _, now, amount, decision| {
            let at = model.last().map_or(now, |(last, _)| now.max(*last));
            let used: u64 = model.iter().filter(|(time, _)| at.since(*time) < period).map(|(_, units)| units).sum();
            assert_eq!(decision.is_allowed, used + amount <= limit);
            if decision.is_allowed {
                model.push((at, amount));
            }
        });
    }

    /// Any state that can be encoded, any time, any amount.
    #[test]
    fn nothing_overflows(
        limit in extremes(), count in extremes(), period in extremes(), state in (extremes(), extremes(), extremes()),
        now in extremes(), amount in extremes(),
    ) {
        let (a, b, c) = state;
        let (time, now) = (Time::from_nanos(a), Time::from_nanos(now));
        let level = Level { units: b, fraction: c };
        let period = Duration::from_nanos(period);
        if let Ok(rate) = Rate::new(count, period) {
            Gcra::new(limit, rate).into_iter().for_each(|limiter| use_it(&limiter, a, now, amount));
            let tokens = Tokens { level, updated: time };
            TokenBucket::new(limit, rate).into_iter().for_each(|limiter| use_it(&limiter, tokens, now, amount));
            let water = Water { level, updated: time };
            LeakyBucket::new(limit, rate).into_iter().for_each(|limiter| use_it(&limiter, water, now, amount));
        }
        if let Ok(limiter) = FixedWindow::new(limit, period) {
            use_it(&limiter.clone().with_offset(Duration::from_nanos(c)), Window { start: time, used: b }, now, amount);
            use_it(&limiter, Window { start: time, used: b }, now, amount);
            let sliding = SlidingWindow::new(limit, period).unwrap();
            use_it(&sliding, Windows { start: time, current: b, previous: c }, now, amount);
            let log = SlidingLog::new(limit, period).unwrap();
            let entries = [Entry { time, units: b }, Entry { time: Time::from_nanos(c), units: a }];
            use_it(&log, entries.into(), now, amount);
        }
    }
}

fn extremes() -> impl Strategy<Value = u64> {
    let edge = (0..64_u32, 0..3_u64).prop_map(|(bit, off)| (1_u64 << bit).wrapping_add(off).wrapping_sub(1));
    prop_oneof![edge, Just(u64::MAX), any::<u64>()]
}

fn use_it<L: Limiter>(limiter: &L, mut state: L::State, now: Time, amount: u64) {
    let peeked = limiter.peek(&state, now, amount);
    let before = state.clone();
    let decision = limiter.check(&mut state, now, amount);
    assert_eq!(peeked.is_allowed, decision.is_allowed);
    assert!(decision.is_allowed || state == before);
    assert_eq!(decision.is_allowed, decision.retry_after == Some(Duration::ZERO));
    assert_eq!(decision.retry_after.is_none(), amount > decision.limit);
    assert!(!decision.is_allowed || amount <= peeked.remaining || amount == 0);
    limiter.refund(&mut state, now, amount);
    let decision = limiter.check(&mut state, now, decision.limit);
    assert!(decision.remaining <= decision.limit);
}
