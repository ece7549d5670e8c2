//! Operators do what plain loops over all values would do, for any values.

use std::collections::HashSet;
use std::sync::mpsc;

use proptest::prelude::*;
use tidemark_circuit::{BoxedFiber, Change, Fiber, Flow, Receptor, Recipe, Run, Site};

/// Few different values, so that many are equal.
fn inputs() -> impl Strategy<Value = Vec<i32>> {
    prop::collection::vec(-4..5, 0..40)
}

/// Compares the output of a fiber or flow with that of a model.
macro_rules! same {
    ($recipe:expr, $values:expr, $model:expr) => {{
        let out = $recipe.trace($values.iter().copied()).unwrap();
        prop_assert_eq!(out, $model.into_iter().collect::<Vec<_>>());
    }};
}

/// A combination for which the order of the values matters.
fn fold(held: i64, value: i64) -> i64 {
    held.wrapping_mul(31).wrapping_add(value)
}

fn wide(values: &[i32]) -> Vec<i64> {
    values.iter().copied().map(i64::from).collect()
}

proptest! {
    #[test]
    fn values_are_compared_with_bounds(values in inputs(), a in -4_i32..5, b in -4_i32..5) {
        let (lower, upper) = (a.min(b), a.max(b));
        let each = || values.iter().copied();
        same!(Fiber::new().above(a), values, each().filter(|v| *v > a));
        same!(Fiber::new().below(a), values, each().filter(|v| *v < a));
        same!(Fiber::new().min(a), values, each().filter(|v| *v >= a));
        same!(Fiber::new().max(a), values, each().filter(|v| *v <= a));
        let within = lower..=upper;
        same!(Fiber::new().range(lower, upper).unwrap(), values, each().filter(|v| within.contains(v)));
        same!(Fiber::new().deadband(lower, upper).unwrap(), values, each().filter(|v| !within.contains(v)));
        same!(Fiber::new().clamp(lower, upper).unwrap(), values, each().map(|v| v.clamp(lower, upper)));
        prop_assert_eq!(Fiber::new().range(a, b).is_err(), a > b);
    }

    #[test]
    fn an_order_that_is_turned_around_swaps_the_bounds(values in inputs(), a in -4_i32..5, b in -4_i32..5) {
        let (lower, upper) = (a.min(b), a.max(b));
        let turned = |left: &i32, right: &i32| right.cmp(left);
        let both = |left: Vec<i32>, right: Vec<i32>| { prop_assert_eq!(left, right); Ok(()) };
        let out = |fiber: &dyn Fn() -> BoxedFiber<i32>| fiber().trace(values.clone()).unwrap();
        both(out(&|| Fiber::new().above_by(a, turned).boxed()), out(&|| Fiber::new().below(a).boxed()))?;
        both(out(&|| Fiber::new().below_by(a, turned).boxed()), out(&|| Fiber::new().above(a).boxed()))?;
        both(out(&|| Fiber::new().min_by(a, turned).boxed()), out(&|| Fiber::new().max(a).boxed()))?;
        both(out(&|| Fiber::new().max_by(a, turned).boxed()), out(&|| Fiber::new().min(a).boxed()))?;
        both(out(&|| Fiber::new().high_by(turned).boxed()), out(&|| Fiber::new().low().boxed()))?;
        both(out(&|| Fiber::new().low_by(turned).boxed()), out(&|| Fiber::new().high().boxed()))?;
        both(out(&|| Fiber::new().range_by(upper, lower, turned).unwrap().boxed()),
            out(&|| Fiber::new().range(lower, upper).unwrap().boxed()))?;
        both(out(&|| Fiber::new().deadband_by(upper, lower, turned).unwrap().boxed()),
            out(&|| Fiber::new().deadband(lower, upper).unwrap().boxed()))?;
        both(out(&|| Fiber::new().clamp_by(upper, lower, turned).unwrap().boxed()),
            out(&|| Fiber::new().clamp(lower, upper).unwrap().boxed()))?;
    }

    #[test]
    fn records_are_values_beyond_all_before(values in inputs()) {
        let records = |beyond: fn(&i32, &i32) -> bool| {
            let passes = |index: usize| values[..index].iter().all(|before| beyond(&values[index], before));
            (0..values.len()).filter(|index| passes(*index)).map(|index| values[index]).collect::<Vec<_>>()
        };
        same!(Fiber::new().high(), values, records(|value, before| value > before));
        same!(Fiber::new().low(), values, records(|value, before| value < before));
    }

    #[test]
    fn repetitions_are_dropped(values in inputs(), initial in -4..5) {
        let mut deduplicated = values.clone();
        deduplicated.dedup();
        same!(Fiber::new().diff(), values, deduplicated);
        let mut by_key = values.clone();
        by_key.dedup_by_key(|value| *value / 2);
        same!(Fiber::new().change(|value| value / 2), values, by_key);
        let mut from_initial = [&[initial], values.as_slice()].concat();
        from_initial.dedup();
        same!(Fiber::new().diff_from(initial), values, from_initial.into_iter().skip(1));
    }

    #[test]
    fn values_are_distinct_from_those_that_passed(values in inputs(), capacity in 1_usize..6) {
        let mut seen = HashSet::new();
        let first = values.iter().copied().filter(|value| seen.insert(*value)).collect::<Vec<_>>();
        same!(Fiber::new().distinct(), values, first.clone());
        same!(Fiber::new().distinct_unbounded(), values, first);

        let mut passed: Vec<i32> = Vec::new();
        for value in &values {
            if !passed.iter().rev().take(capacity).any(|before| before == value) {
                passed.push(*value);
            }
        }
        same!(Fiber::new().distinct_last(capacity).unwrap(), values, passed);
    }

    #[test]
    fn values_are_counted(values in inputs(), count in 0_usize..6) {
        let each = || values.iter().copied();
        same!(Fiber::new().limit(count as u64), values, each().take(count));
        same!(Fiber::new().skip(count as u64), values, each().skip(count));
        same!(Fiber::new().inhibit(count as u64), values, each().step_by(count + 1));
        same!(Fiber::new().every(count as u64 + 1).unwrap(), values, each().skip(count).step_by(count + 1));
        same!(Fiber::new().take_while(|v| *v < 2), values, each().take_while(|v| *v < 2));
        same!(Fiber::new().drop_while(|v| *v < 2), values, each().skip_while(|v| *v < 2));
        let delayed = std::iter::repeat_n(9, count + 1).chain(each()).take(values.len());
        same!(Fiber::new().delay(count + 1, 9).unwrap(), values, delayed);
    }

    #[test]
    fn runs_are_counted(values in inputs(), count in 1_usize..5) {
        let runs = || values.chunk_by(|left, right| left == right);
        let steady = runs().filter_map(|run| run.get(count - 1)).copied();
        same!(Fiber::new().steady(count as u64).unwrap(), values, steady);

        let streaks = values.chunk_by(|left, right| (*left > 0) == (*right > 0)).filter(|run| run[0] > 0)
            .flat_map(|run| run.chunks_exact(count)).map(|streak| streak[count - 1]);
        same!(Fiber::new().streak(count as u64, |value| *value > 0).unwrap(), values, streaks);

        let counted = |run: &[i32]| (1..).zip(run.to_vec()).map(|(length, value)| Run { value, length });
        let lengths = runs().flat_map(counted);
        same!(Flow::new().run(), values, lengths);

        let runs: Vec<&[i32]> = runs().collect();
        let changes = runs.windows(2).map(|pair|
            Change { from: pair[0][0], to: pair[1][0], length: pair[0].len() as u64 });
        same!(Flow::new().change(), values, changes);
    }

    #[test]
    fn turning_points_pass(values in inputs(), initial in -4..5) {
        let before = [&[initial], values.as_slice()].concat();
        let pairs = || before.iter().copied().zip(values.iter().copied());
        let rises = pairs().filter(|(a, b)| a < b).map(|(_, b)| b);
        same!(Fiber::new().edge(initial, |a, b| a < b), values, rises);
        same!(Fiber::new().relate(initial, |a, b| a * 10 + b), values, pairs().map(|(a, b)| a * 10 + b));
        let filtered = pairs().filter(|(_, b)| *b != 0).map(|(a, b)| a * 10 + b);
        let unless_zero = |a: Option<&i32>, b: &i32| (*b != 0).then(|| a.unwrap() * 10 + b);
        same!(Fiber::new().filter_relate(Some(initial), unless_zero), values, filtered);

        let first_of_run = values.chunk_by(|a, b| (*a > 1) == (*b > 1)).map(|run| run[0]);
        same!(Fiber::new().pulse(|value| *value > 1), values, first_of_run.filter(|value| *value > 1));

        let mut last = initial;
        let guarded = values.iter().copied().filter(|value| {
            let passes = *value != last + 1;
            if passes { last = *value; }
            passes
        });
        same!(Fiber::new().guard_from(initial, |last, value| *value != last + 1), values, guarded);

        let inside = (0..values.len()).filter(|index| {
            let (enter, exit) = (|v: &&i32| **v >= 2, |v: &&i32| **v <= -2);
            // The last value beyond either bound decides, this one included.
            values[..=*index].iter().rev().find(|v| enter(v) || exit(v)).is_some_and(|v| *v >= 2)
        });
        same!(Fiber::new().hysteresis(|v| *v >= 2, |v| *v <= -2), values, inside.map(|index| values[index]));
    }

    #[test]
    fn values_are_combined(values in inputs(), size in 1_usize..6, bound in 0_i64..9) {
        let values = wide(&values);
        let total = |values: &[i64]| values.iter().copied().fold(7, fold);
        let combine = |held: &i64, value: &i64| fold(*held, *value);
        let maybe = |held: Option<&i64>, value: &i64| held.map(|held| fold(*held, *value));

        let running: Vec<i64> = (1..=values.len()).map(|end| total(&values[..end])).collect();
        same!(Fiber::new().reduce(7, combine), values, running.clone());
        same!(Fiber::new().filter_reduce(Some(7), maybe), values, running.clone());
        same!(Flow::new().scan(|| 7, |held, value| *held = fold(*held, *value)), values, running);

        let rolling: Vec<i64> = values.windows(size).map(total).collect();
        same!(Fiber::new().rolling(size, 7, combine).unwrap(), values, rolling.clone());
        same!(Fiber::new().filter_rolling(size, 7, maybe).unwrap(), values, rolling.clone());
        let windows = Flow::new().window(size).unwrap().filter_map(move |window| {
            (window.len() == size).then(|| window.fold(7, |held, value| fold(held, *value)))
        });
        same!(windows, values, rolling);

        let batches: Vec<i64> = values.chunks_exact(size).map(total).collect();
        same!(Fiber::new().tumble(size as u64, 7, combine).unwrap(), values, batches.clone());
        same!(Fiber::new().filter_tumble(size as u64, 7, maybe).unwrap(), values, batches);

        let (mut fired, mut begin) = (Vec::new(), 0);
        for end in 1..=values.len() {
            let held: i64 = values[begin..end].iter().sum();
            if held >= bound {
                fired.push(held);
                begin = end;
            }
        }
        let fire = move |sum: &i64| *sum >= bound;
        same!(Fiber::new().integrate(0, |sum, value| sum + value, fire), values, fired.clone());
        let add = |sum: Option<&i64>, value: &i64| Some(sum.unwrap_or(&0) + value);
        same!(Fiber::new().filter_integrate(None, add, fire), values, fired);
    }

    #[test]
    fn what_is_absent_is_held_as_absent(values in inputs(), size in 1_usize..6) {
        // Absent after a zero, else the sum since then.
        let sum = |held: Option<&i32>, value: &i32| (*value != 0).then(|| held.unwrap_or(&0) + value);
        let since_zero = |values: &[i32]| {
            let from = values.iter().rposition(|value| *value == 0).map_or(0, |zero| zero + 1);
            (from < values.len()).then(|| values[from..].iter().sum::<i32>())
        };
        let running = (1..=values.len()).filter_map(|end| since_zero(&values[..end]));
        same!(Fiber::new().filter_reduce(None, sum), values, running);
        same!(Fiber::new().filter_rolling(size, 0, sum).unwrap(), values,
            values.windows(size).filter_map(since_zero));
        same!(Fiber::new().filter_tumble(size as u64, 0, sum).unwrap(), values,
            values.chunks_exact(size).filter_map(since_zero));
    }

    #[test]
    fn values_take_other_ways(values in inputs()) {
        let (sender, side) = mpsc::channel();
        let (positive, other): (Vec<i32>, Vec<i32>) = values.iter().copied().partition(|value| *value > 0);
        let push = move |value: i32| _ = sender.send(value);
        same!(Fiber::new().route(|value| *value > 0, push.clone()), values, other.clone());
        prop_assert_eq!(side.try_iter().collect::<Vec<_>>(), positive.clone());
        same!(Fiber::new().tee(push), values, values.clone());
        prop_assert_eq!(side.try_iter().collect::<Vec<_>>(), values.clone());

        let out = Fiber::new().when(|value| *value > 0, Fiber::new().diff()).trace(values.clone()).unwrap();
        let (out_positive, out_other): (Vec<i32>, Vec<i32>) = out.into_iter().partition(|value| *value > 0);
        let mut changes = positive;
        changes.dedup();
        prop_assert_eq!((out_positive, out_other), (changes, other));
    }

    #[test]
    fn boxing_and_grouping_change_nothing(values in inputs()) {
        let positive = || Fiber::new().guard(|value| *value > 0);
        let changes = || Fiber::new().diff();
        let sums = || Fiber::new().reduce(0, |sum: &i32, value| sum + value);
        let plain = positive().diff().reduce(0, |sum, value| sum + value).trace(values.clone()).unwrap();
        same!(positive().fiber(changes()).fiber(sums()), values, plain.clone());
        same!(positive().fiber(changes().fiber(sums())), values, plain.clone());
        same!(positive().boxed().fiber(changes().boxed()).boxed().fiber(sums()), values, plain.clone());
        let flow = Flow::from(positive()).boxed().flow(Flow::new().fiber(changes())).fiber(sums()).boxed();
        same!(flow, values, plain);
    }

    #[test]
    fn equal_seeds_give_equal_draws(seed in any::<u64>(), probability in 0.0..=1.0) {
        let fiber = Fiber::<u32>::new().chance(probability).unwrap();
        prop_assert_eq!(drawn(&fiber, seed), drawn(&fiber, seed));
    }
}

/// The numbers below a thousand that come out of the recipe at a site with this seed.
fn drawn(recipe: &impl Recipe<In = u32, Out = u32>, seed: u64) -> Vec<u32> {
    let (sender, out) = mpsc::channel();
    let site = Site { seed, ..Site::detached() };
    let mut receptor = recipe.attach(&site, move |value| _ = sender.send(value)).unwrap();
    (0..1000).for_each(|value| receptor.receive(value));
    out.try_iter().collect()
}

#[test]
fn chance_keeps_about_its_share_whatever_the_seed_is() {
    for (seed, probability) in [(0, 0.5), (1, 0.1), (u64::MAX, 0.9), (42, 0.3)] {
        let share = drawn(&Fiber::new().chance(probability).unwrap(), seed).len() as f64 / 1000.0;
        assert!((share - probability).abs() < 0.06, "{share} instead of {probability} with seed {seed}");
    }
}

#[test]
fn operators_of_one_chain_draw_different_numbers() {
    let coin = || Fiber::<u32>::new().chance(0.5).unwrap();
    // One coin for the even numbers and one for the odd ones: both are thrown equally often.
    let even = || Fiber::new().when(|value| value % 2 == 0, coin());
    let odd = || Fiber::new().when(|value| value % 2 == 1, coin());
    let chains = [
        even().when(|value| value % 2 == 1, coin()).boxed(),
        even().fiber(odd()).boxed(),
        even().boxed().fiber(odd().boxed()).boxed(),
        Fiber::new().when(|_| true, even().fiber(odd())).boxed(),
        Fiber::new().when(|value| value % 2 == 0, coin()).fiber(odd()).limit(1000).boxed(),
    ];
    for (index, chain) in chains.iter().enumerate() {
        let (even, odd): (Vec<u32>, Vec<u32>) = drawn(chain, 7).into_iter().partition(|value| value % 2 == 0);
        let halves = |values: Vec<u32>| values.into_iter().map(|value| value / 2).collect::<Vec<u32>>();
        assert_ne!(halves(even), halves(odd), "chain {index}");
    }
}

#[test]
fn different_seeds_draw_different_numbers() {
    let coin = Fiber::<u32>::new().chance(0.5).unwrap();
    assert_ne!(drawn(&coin, 1), drawn(&coin, 2));
}

#[test]
#[allow(clippy::float_cmp, reason = "the values pass as they are")]
fn what_cannot_be_compared_is_dropped_except_by_clamp() {
    let nan = [1.0, f64::NAN, 3.0, 2.0];
    assert_eq!(Fiber::new().above(1.5).trace(nan).unwrap(), [3.0, 2.0]);
    assert_eq!(Fiber::new().range(0.0, 2.5).unwrap().trace(nan).unwrap(), [1.0, 2.0]);
    assert_eq!(Fiber::new().deadband(1.5, 2.5).unwrap().trace(nan).unwrap(), [1.0, 3.0]);
    assert_eq!(Fiber::new().high().trace([f64::NAN, 1.0, f64::NAN, 3.0, 2.0]).unwrap(), [1.0, 3.0]);
    assert_eq!(Fiber::new().low().trace([f64::NAN, 3.0, f64::NAN, 1.0, 2.0]).unwrap(), [3.0, 1.0]);
    let clamped = Fiber::new().clamp(0.0, 2.0).unwrap().trace(nan).unwrap();
    assert!(clamped[1].is_nan());
    assert_eq!([clamped[0], clamped[2], clamped[3]], [1.0, 2.0, 2.0]);
}

#[test]
fn values_need_not_be_copied_or_shared_where_nothing_is_remembered() {
    struct Token(mpsc::Receiver<u8>);
    let (_sender, receiver) = mpsc::channel();
    let flow = Flow::<Token>::new()
        .fiber(Fiber::new().guard(|_| true).limit(1).every(1).unwrap().when(|_| false, Fiber::new()))
        .window(2)
        .unwrap()
        .map(|window| window.count(|token| token.0.try_recv().is_err()));
    assert_eq!(flow.trace([Token(receiver)]).unwrap(), [1]);
}
