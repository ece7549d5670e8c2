//! Fiber: operators that keep the type of the values.

#![allow(clippy::trivially_copy_pass_by_ref, reason = "operators show values by reference")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tidemark_circuit::{Circuit, Current, Fiber, Flow};

use super::attached::{Attached, Recorder, Timed, check, refusals, scenarios};
use super::support::wait_until;

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("FIB-05", "Java: there is one provider of fibers"),
    ("FIB-08", "Java: absent argument"),
    ("FIB-14", "Java: absent argument"),
    ("FIB-16", "the type system: needs `PartialOrd`, see `operator/order.rs`"),
    ("FIB-18", "the type system: needs `PartialOrd`, see `operator/order.rs`"),
    ("FIB-20", "the type system: bounds have the type of the values, see `operator/order.rs`"),
    ("FIB-21", "the type system: needs `PartialOrd`, see `operator/order.rs`"),
    ("FIB-25", "the type system: bounds have the type of the values, see `operator/order.rs`"),
    ("FIB-26", "the type system: needs `PartialOrd`, see `operator/order.rs`"),
    ("FIB-28", "the type system: needs `PartialOrd`, see `operator/order.rs`"),
    ("FIB-30", "the type system: needs `PartialOrd`, see `operator/order.rs`"),
    ("FIB-33", "the type system: bounds have the type of the values, see `operator/order.rs`"),
    ("FIB-34", "the type system: needs `PartialOrd`, see `operator/order.rs`"),
    ("FIB-097", "Java: absent argument"),
    ("FIB-098", "Java: absent argument"),
    ("FIB-099", "Java: absent argument"),
    ("FIB-100", "Java: absent argument"),
    ("FIB-101", "Java: absent argument"),
    ("FIB-102", "Java: absent argument"),
    ("FIB-104", "Java: absent argument"),
    ("FIB-107", "Java: absent argument"),
    ("FIB-108", "Java: absent argument"),
    ("FIB-109", "Java: absent argument"),
    ("FIB-110", "Java: absent argument"),
    ("FIB-111", "Java: absent argument"),
    ("FIB-112", "Java: absent argument"),
    ("FIB-115", "Java: absent argument"),
    ("FIB-116", "Java: absent argument"),
    ("FIB-117", "Java: absent argument"),
    ("FIB-118", "Java: absent argument"),
    ("FIB-119", "Java: absent argument"),
    ("FIB-120", "the type system: a negative depth does not compile"),
    ("FIB-121", "Java: absent argument"),
    ("FIB-123", "Java: absent argument"),
    ("FIB-124", "the type system: a negative capacity does not compile"),
    ("FIB-126", "Java: absent argument"),
    ("FIB-127", "Java: absent argument"),
    ("FIB-128", "Java: absent argument"),
    ("FIB-131", "Java: absent argument"),
    ("FIB-132", "Java: absent argument"),
    ("FIB-133", "Java: absent argument"),
    ("FIB-134", "Java: absent argument"),
    ("FIB-135", "Java: absent argument"),
    ("FIB-136", "Java: absent argument"),
    ("FIB-138", "Java: absent argument"),
    ("FIB-139", "Java: absent argument"),
    ("FIB-140", "Java: absent argument"),
    ("FIB-141", "Java: absent argument"),
    ("FIB-142", "the type system: a negative count does not compile"),
    ("FIB-143", "Java: absent argument"),
    ("FIB-144", "Java: absent argument"),
    ("FIB-145", "the type system: a negative count does not compile"),
    ("FIB-146", "Java: absent argument"),
    ("FIB-147", "Java: absent argument"),
    ("FIB-148", "Java: absent argument"),
    ("FIB-149", "Java: absent argument"),
    ("FIB-150", "Java: absent argument"),
    ("FIB-151", "Java: absent argument"),
    ("FIB-152", "Java: absent argument"),
    ("FIB-153", "Java: absent argument"),
    ("FIB-154", "Java: there is one provider of fibers"),
    ("FIB-155", "Java: absent argument"),
    ("FIB-156", "Java: absent argument"),
    ("FIB-157", "Java: absent argument"),
    ("FIB-160", "Java: absent argument"),
    ("FIB-161", "Java: absent argument"),
    ("FIB-162", "Java: absent argument"),
    ("FIB-163", "Java: absent argument"),
    ("FIB-164", "Java: absent argument"),
    ("FIB-165", "Java: absent argument"),
    ("FIB-166", "Java: absent argument"),
    ("FIB-167", "Java: absent argument"),
    ("FIB-169", "Java: absent argument"),
    ("FIB-170", "Java: absent argument"),
    ("FIB-171", "Java: absent argument"),
    ("FIB-172", "Java: absent argument"),
    ("FIB-173", "the type system: a negative count does not compile"),
    ("FIB-175", "Java: absent argument"),
    ("FIB-177", "Java: absent argument"),
    ("FIB-178", "Java: absent argument"),
    ("FIB-179", "Java: absent argument"),
    ("FIB-181", "Java: absent argument"),
    ("FIB-182", "Java: absent argument"),
    ("FIB-183", "Java: absent argument"),
    ("FIB-184", "Java: absent argument"),
];

const DAY: Duration = Duration::from_hours(24);
const MILLI: Duration = Duration::from_millis(1);

// Factory and composition.

#[test]
fn fib_01_a_fiber_of_a_named_type_is_of_the_same_kind_as_one_of_an_inferred_type() {
    let inferred = Fiber::default();
    check(&inferred, ["a"], ["a"]);
    assert_eq!(size_of_val(&inferred), size_of_val(&Fiber::<&str>::new()));
    assert_same_type(&inferred, &Fiber::<&str>::new());
}

#[test]
fn fib_02_two_fibers_without_operators_are_of_one_kind() {
    assert_same_type(&Fiber::<i32>::new(), &Fiber::<i32>::new());
}

fn assert_same_type<T>(_: &T, _: &T) {}

scenarios! {
    fn fib_03_operators_apply_from_left_to_right: Fiber::new().above(0).below(10), [-1, 0, 5, 10, 12] => [5];
    fn fib_13_a_fiber_of_strings_keeps_them:
        Fiber::<String>::new(), ["a".to_owned(), "b".to_owned()] => ["a", "b"];
}

#[test]
fn fib_04_a_fiber_runs_inside_a_flow() {
    let peeked = Recorder::new();
    let fiber = Fiber::new().guard(|value| *value > 0).diff().peek(peeked.peek());
    check(&Flow::new().fiber(fiber), [1, 1, -2, 3, 3], [1, 3]);
    assert_eq!(peeked.seen(), [1, 3]);
}

#[test]
fn fib_06_guard_then_diff_then_peek() {
    let peeked = Recorder::new();
    let fiber = Fiber::new().guard(|value| *value > 0).diff().peek(peeked.peek());
    check(&fiber, [1, 1, -2, 3, 3, 4], [1, 3, 4]);
    assert_eq!(peeked.seen(), [1, 3, 4]);
}

#[test]
fn fib_07_each_attachment_of_a_composed_fiber_has_its_own_state() {
    let fiber = Fiber::new().guard(|value| *value > 0).fiber(Fiber::new().diff());
    let (a, b) = (Attached::of(&fiber), Attached::of(&fiber));
    for value in [1, 1, 2] {
        a.emit(value);
        b.emit(value);
    }
    assert_eq!(a.seen(), [1, 2]);
    assert_eq!(b.seen(), [1, 2]);
}

scenarios! {
    fn fib_09_a_composed_fiber_runs_behind_the_first:
        Fiber::new().guard(|value| *value > 0).fiber(Fiber::new().diff()), [1, 1, -2, 3, 3, 4] => [1, 3, 4];
}

#[test]
fn fib_10_a_flow_made_from_a_fiber_does_the_same() {
    let peeked = Recorder::new();
    let flow = Flow::from(Fiber::new().guard(|value| *value > 0).peek(peeked.peek()));
    check(&flow, [-1, 2, -3, 4], [2, 4]);
    assert_eq!(peeked.seen(), [2, 4]);
}

#[test]
fn fib_11_a_fiber_runs_ahead_of_its_target() {
    let peeked = Recorder::new();
    let fiber = Fiber::new().guard(|value| *value > 0).diff().peek(peeked.peek());
    let attached = Attached::of(&fiber);
    for (value, seen) in [(1, 1), (1, 1), (-2, 1), (3, 2), (3, 2), (4, 3)] {
        attached.emit(value);
        assert_eq!((attached.seen().len(), peeked.seen().len()), (seen, seen));
    }
    assert_eq!(attached.seen(), [1, 3, 4]);
}

#[test]
fn fib_12_a_fiber_runs_in_the_circuit_of_its_target() {
    let (first, second) = (Circuit::new(), Circuit::new());
    let (peeked, ended) = (Recorder::new(), Recorder::new());
    let (mut peek, mut end) = (peeked.receptor(), ended.receptor());
    let terminal = second.pipe(move |value| end((value, Current::here()))).unwrap();
    let hop = first.pipe(terminal).unwrap();
    let fiber =
        Fiber::new().guard(|value| *value > 0).diff().peek(move |value| peek((*value, Current::here())));
    let head = hop.prepend(&fiber).unwrap();
    [1, 1, -2, 3, 3, 4].into_iter().for_each(|value| head.emit(value));
    first.settle().unwrap();
    second.settle().unwrap();
    assert_eq!(peeked.seen(), [1, 3, 4].map(|value| (value, first.current().clone())));
    assert_eq!(ended.seen(), [1, 3, 4].map(|value| (value, second.current().clone())));
}

// Natural order.

scenarios! {
    fn fib_15_above_excludes_its_bound: Fiber::new().above(0), [-1, 0, 1, 5] => [1, 5];
    fn fib_17_below_excludes_its_bound: Fiber::new().below(5), [3, 5, 7] => [3];
    fn fib_19_clamp_to_one_value: Fiber::new().clamp(5, 5)?, [-1, 5, 99] => [5, 5, 5];
    fn fib_22_clamp_puts_the_nearer_bound: Fiber::new().clamp(0, 10)?, [-5, 5, 15] => [0, 5, 10];
    fn fib_23_deadband_of_one_value: Fiber::new().deadband(5, 5)?, [3, 5, 7] => [3, 7];
    fn fib_24_deadband_includes_its_bounds: Fiber::new().deadband(3, 7)?, [1, 3, 5, 7, 9] => [1, 9];
    fn fib_27_max_includes_its_bound: Fiber::new().max(5), [3, 5, 7] => [3, 5];
    fn fib_29_min_includes_its_bound: Fiber::new().min(5), [3, 5, 7] => [5, 7];
    fn fib_31_range_of_one_value: Fiber::new().range(5, 5)?, [3, 5, 7] => [5];
    fn fib_32_range_includes_its_bounds: Fiber::new().range(3, 7)?, 1..=10 => [3, 4, 5, 6, 7];
}

// Operators with state.

scenarios! {
    fn fib_35_chance_of_one_passes_all: Fiber::new().chance(1.0)?, [1, 2, 3] => [1, 2, 3];
    fn fib_36_chance_of_nothing_passes_none: Fiber::new().chance(0.0)?, [1, 2, 3] => [0; 0];
    fn fib_37_change_compares_keys: Fiber::new().change(|value| value / 10), [5, 7, 13, 18, 9] => [5, 13, 9];
    fn fib_38_delay_emits_earlier_values: Fiber::new().delay(2, 0)?, [10, 20, 30, 40] => [0, 0, 10, 20];
    fn fib_39_diff_drops_repetitions: Fiber::new().diff(), [1, 1, 2, 2, 1] => [1, 2, 1];
    fn fib_40_diff_compares_by_value:
        Fiber::new().diff(), [String::from("same"), String::from("same")] => ["same"];
    fn fib_41_diff_from_a_value: Fiber::new().diff_from(5), [5, 7, 7, 5] => [7, 5];
    fn fib_42_distinct_forgets_the_oldest:
        Fiber::new().distinct_last(3)?, [1, 2, 1, 3, 4, 1] => [1, 2, 3, 4, 1];
    fn fib_44_drop_while_drops_at_the_begin_only:
        Fiber::new().drop_while(|value| *value < 5), [1, 3, 5, 2, 8] => [5, 2, 8];
    // The last 3 follows a 2 that was dropped: it is above the previous input, but not above the
    // last value that passed.
    fn fib_45_edge_compares_with_the_last_input:
        Fiber::new().edge(0, |before, value| value > before), [1, 0, 3, 2, 3] => [1, 3, 3];
    fn fib_48_every_duration_drops_the_first_interval: Fiber::new().every_duration(DAY)?, [1, 2, 3] => [0; 0];
    fn fib_49_every_third: Fiber::new().every(3)?, 1..=9 => [3, 6, 9];
    fn fib_50_guard_from_compares_with_the_last_that_passed:
        Fiber::new().guard_from(0, |last, value| value > last), [5, 3, 7, 7, 9] => [5, 7, 9];
    fn fib_54_heartbeat_is_diff_while_it_is_not_silent_for_long:
        Fiber::new().heartbeat(DAY)?, [1, 1, 1, 2, 2, 1] => [1, 2, 1];
    fn fib_55_high_passes_new_maxima: Fiber::new().high(), [3, 5, 2, 7, 6, 9] => [3, 5, 7, 9];
    fn fib_56_hysteresis_drops_the_value_that_exits:
        Fiber::new().hysteresis(|value| *value >= 10, |value| *value <= 2),
        [5, 10, 8, 5, 2, 7, 12] => [10, 8, 5, 12];
    fn fib_57_inhibit_drops_after_each_that_passes: Fiber::new().inhibit(2), 1..=7 => [1, 4, 7];
    fn fib_58_integrate_from_nothing:
        Fiber::new().filter_integrate(None, |sum, value| Some(sum.unwrap_or(&0) + value), |sum| *sum >= 3),
        [1, 2, 4] => [3, 4];
    fn fib_59_integrate_emits_and_begins_again:
        Fiber::new().integrate(0, |sum, value| sum + value, |sum| *sum >= 10), [3, 4, 5, 6, 7] => [12, 13];
    fn fib_60_limit: Fiber::new().limit(3), 1..=5 => [1, 2, 3];
    fn fib_61_low_passes_new_minima: Fiber::new().low(), [5, 3, 7, 2, 4, 1] => [5, 3, 2, 1];
    fn fib_62_pulse_passes_rising_edges: Fiber::new().pulse(|value| *value > 5), [3, 7, 8, 2, 9] => [7, 9];
    fn fib_64_reduce_emits_the_running_result:
        Fiber::new().reduce(0, |sum, value| sum + value), [1, 2, 3] => [1, 3, 6];
    fn fib_65_relate_goes_on_when_nothing_comes_out:
        Fiber::new().filter_relate(None, |before, value: &i32| Some(value - before?)), [3, 8] => [5];
    fn fib_66_relate_compares_with_the_last_input:
        Fiber::new().relate(0, |before, value| value - before), [10, 15, 13] => [10, 5, -2];
    fn fib_67_rolling_goes_on_after_an_absent_result:
        Fiber::new().filter_rolling(2, 0, sum_without_two)?, 1..=3 => [3];
    fn fib_68_rolling_emits_when_its_window_is_full:
        Fiber::new().rolling(3, 0, |sum, value| sum + value)?, 1..=5 => [6, 9, 12];
    fn fib_69_skip: Fiber::new().skip(2), 1..=5 => [3, 4, 5];
    fn fib_70_steady_emits_once_a_run: Fiber::new().steady(3)?, [5, 5, 5, 5, 7] => [5];
    fn fib_71_steady_emits_the_value_that_confirms:
        Fiber::new().steady_by(2, |first: &i32, value| (value - first).abs() <= 1)?, [10, 11] => [11];
    fn fib_72_streak_that_is_too_short: Fiber::new().streak(5, is_negative)?, [-1, -2, -3, -4] => [0; 0];
    fn fib_73_streak_is_ended_by_another_value:
        Fiber::new().streak(3, is_negative)?, [-1, -2, 7, -3, -4, -5] => [-5];
    fn fib_75_streak_counts_anew: Fiber::new().streak(3, is_negative)?, [-1, -2, -3, -4, -5, -6] => [-3, -6];
    fn fib_76_streak_of_one_is_guard: Fiber::new().streak(1, is_negative)?, [-1, 7, -2, -3] => [-1, -2, -3];
    fn fib_77_streak_keeps_its_count_when_the_predicate_panics:
        Fiber::new().streak(2, |value| { assert_ne!(*value, 999); *value < 0 })?, [-1, 999, -2] => [-2];
    fn fib_78_take_while: Fiber::new().take_while(|value| *value < 5), [1, 3, 5, 2] => [1, 3];
    fn fib_79_tumble_drops_an_absent_result_and_begins_again:
        Fiber::new().filter_tumble(2, 0, sum_without_two)?, 1..=4 => [7];
    fn fib_80_tumble_emits_once_a_batch:
        Fiber::new().tumble(3, 0, |sum, value| sum + value)?, 1..=9 => [6, 15, 24];
}

fn is_negative(value: &i32) -> bool {
    *value < 0
}

fn sum_without_two(sum: Option<&i32>, value: &i32) -> Option<i32> {
    (*value != 2).then(|| sum.unwrap_or(&0) + value)
}

#[test]
fn fib_43_distinct_drops_what_it_has_seen() {
    check(&Fiber::new().distinct(), [1, 2, 1, 3, 2, 3], [1, 2, 3]);
    check(&Fiber::new().distinct_unbounded(), [1, 2, 1, 3, 2, 3], [1, 2, 3]);
}

#[test]
fn fib_46_every_duration_keeps_its_phase_when_a_value_comes_late() {
    let mut timed = Timed::of(&Fiber::new().every_duration(250 * MILLI).unwrap());
    timed.emit_after(Duration::ZERO, 1);
    timed.emit_after(600 * MILLI, 2);
    // The third interval begins at 750 ms, whenever the second interval's value came.
    timed.emit_after(149 * MILLI, 3);
    timed.emit_after(31 * MILLI, 4);
    timed.emit_after(219 * MILLI, 5);
    timed.emit_after(MILLI, 6);
    assert_eq!(timed.seen(), [2, 4, 6]);
}

#[test]
fn fib_47_every_duration_passes_after_its_interval() {
    let mut timed = Timed::of(&Fiber::new().every_duration(MILLI).unwrap());
    timed.emit_after(Duration::ZERO, 1);
    timed.emit_after(MILLI / 2, 2);
    timed.emit_after(MILLI / 2, 3);
    assert_eq!(timed.seen(), [3]);
}

#[test]
fn operators_go_by_the_systems_clock_where_no_simulation_runs_their_circuit() {
    let every = Attached::of(&Fiber::new().every_duration(MILLI).unwrap());
    let heartbeat = Attached::of(&Fiber::new().heartbeat(MILLI).unwrap());
    let comes_again = || {
        every.emit(1);
        heartbeat.emit(1);
        !every.seen().is_empty() && heartbeat.seen().len() > 1
    };
    wait_until(comes_again, "a millisecond has passed");
}

#[test]
fn fib_51_heartbeat_counts_from_the_first_repetition() {
    let mut timed = Timed::of(&Fiber::new().heartbeat(MILLI).unwrap());
    timed.emit_after(Duration::ZERO, 3);
    timed.emit_after(20 * MILLI, 3);
    assert_eq!(timed.seen(), [3]);
}

#[test]
fn fib_52_heartbeat_repeats_the_value_that_it_holds() {
    /// The values are compared by their text only.
    #[derive(Clone, Debug)]
    struct Tagged(&'static str, u32);
    impl PartialEq for Tagged {
        fn eq(&self, other: &Self) -> bool {
            self.0 == other.0
        }
    }
    let mut timed = Timed::of(&Fiber::new().heartbeat(MILLI).unwrap());
    timed.emit_after(Duration::ZERO, Tagged("up", 1));
    timed.emit_after(Duration::ZERO, Tagged("up", 2));
    timed.emit_after(MILLI, Tagged("up", 3));
    let tags: Vec<u32> = timed.seen().iter().map(|value| value.1).collect();
    assert_eq!(tags, [1, 1]);
}

#[test]
fn fib_53_heartbeat_repeats_after_the_silence() {
    let mut timed = Timed::of(&Fiber::new().heartbeat(MILLI).unwrap());
    timed.emit_after(Duration::ZERO, 7);
    timed.emit_after(Duration::ZERO, 7);
    timed.emit_after(MILLI / 2, 7);
    assert_eq!(timed.seen(), [7]);
    timed.emit_after(MILLI / 2, 7);
    assert_eq!(timed.seen(), [7, 7]);
}

#[test]
fn fib_63_reduce_holds_an_absent_result_as_absent() {
    let absent = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&absent);
    let fiber = Fiber::new().filter_reduce(None, move |held: Option<&i32>, value: &i32| {
        counted.fetch_add(usize::from(held.is_none()), Ordering::Relaxed);
        (*value != 1).then_some(*value)
    });
    check(&fiber, [1, 2], [2]);
    assert_eq!(absent.load(Ordering::Relaxed), 2);
}

#[test]
fn fib_74_streak_counts_for_each_attachment() {
    let fiber = Fiber::new().streak(2, is_negative).unwrap();
    let (a, b) = (Attached::of(&fiber), Attached::of(&fiber));
    a.emit(-1);
    b.emit(-10);
    a.emit(-2);
    b.emit(-20);
    assert_eq!(a.seen(), [-2]);
    assert_eq!(b.seen(), [-20]);
}

// A given order, and functions.

scenarios! {
    fn fib_81_above_by_an_order: Fiber::new().above_by(0, i32::cmp), [-1, 0, 1, 5] => [1, 5];
    fn fib_82_below_by_an_order: Fiber::new().below_by(5, i32::cmp), [3, 5, 7] => [3];
    fn fib_83_clamp_by_an_order: Fiber::new().clamp_by(0, 10, i32::cmp)?, [-5, 5, 15] => [0, 5, 10];
    fn fib_84_deadband_by_an_order: Fiber::new().deadband_by(3, 7, i32::cmp)?, [1, 3, 5, 7, 9] => [1, 9];
    fn fib_85_guard: Fiber::new().guard(|value| *value > 0), [-1, 2, -3, 4] => [2, 4];
    fn fib_86_max_by_an_order: Fiber::new().max_by(5, i32::cmp), [3, 5, 7] => [3, 5];
    fn fib_87_min_by_an_order: Fiber::new().min_by(5, i32::cmp), [3, 5, 7] => [5, 7];
    fn fib_89_range_by_an_order: Fiber::new().range_by(3, 7, i32::cmp)?, 1..=10 => [3, 4, 5, 6, 7];
    fn fib_90_replace_by_nothing_drops:
        Fiber::new().filter_replace(|value| (value % 2 == 0).then_some(value * 10)), [1, 2] => [20];
    fn fib_91_replace: Fiber::new().replace(|value| value * 10), [1, 2, 3] => [10, 20, 30];
    fn fib_95_when_leaves_the_other_values_alone:
        Fiber::new()
            .when(|value| *value > 10, Fiber::new().diff())
            .when(|value| *value < 0, Fiber::new().guard(|value| value % 2 == 0)),
        [20, 20, 30, -3, -4, 5] => [20, 30, -4, 5];
    fn fib_96_when_with_a_guard:
        Fiber::new().when(|value| *value > 0, Fiber::new().guard(|value| *value > 2)),
        [-1, 1, 3, -4] => [-1, 3, -4];
}

#[test]
fn fib_88_peek_sees_what_passes() {
    let peeked = Recorder::new();
    check(&Fiber::new().peek(peeked.peek()), [1, 2, 3], [1, 2, 3]);
    assert_eq!(peeked.seen(), [1, 2, 3]);
}

#[test]
fn fib_92_route_takes_values_from_the_main_way() {
    let side = Recorder::new();
    check(&Fiber::new().route(|value| *value > 0, side.receptor()), [1, -2, 3, -4], [-2, -4]);
    assert_eq!(side.seen(), [1, 3]);
}

#[test]
fn fib_93_routes_take_one_after_the_other() {
    let (positive, negative) = (Recorder::new(), Recorder::new());
    let fiber = Fiber::new()
        .route(|value| *value > 0, positive.receptor())
        .route(|value| *value < 0, negative.receptor());
    check(&fiber, [1, -2, 0, 3, -4], [0]);
    assert_eq!(positive.seen(), [1, 3]);
    assert_eq!(negative.seen(), [-2, -4]);
}

#[test]
fn fib_94_tee_gives_a_copy() {
    let side = Recorder::new();
    check(&Fiber::new().tee(side.receptor()), [1, 2, 3], [1, 2, 3]);
    assert_eq!(side.seen(), [1, 2, 3]);
}

// Configurations that are refused.

refusals! {
    fn fib_103_chance_beyond_one: Fiber::<i32>::new().chance(1.5), Fiber::<i32>::new().chance(f64::NAN);
    fn fib_105_clamp_by_an_order_upside_down: Fiber::new().clamp_by(2, 1, i32::cmp);
    fn fib_106_clamp_upside_down: Fiber::new().clamp(2, 1), Fiber::new().clamp(f64::NAN, 1.0);
    fn fib_113_deadband_by_an_order_upside_down: Fiber::new().deadband_by(2, 1, i32::cmp);
    fn fib_114_deadband_upside_down: Fiber::new().deadband(2, 1), Fiber::new().deadband(0.0, f64::NAN);
    fn fib_122_delay_of_nothing: Fiber::new().delay(0, 0);
    fn fib_125_distinct_without_memory: Fiber::<i32>::new().distinct_last(0);
    fn fib_129_every_duration_of_nothing:
        Fiber::<i32>::new().every_duration(Duration::ZERO), Fiber::<i32>::new().every_duration(Duration::MAX);
    fn fib_130_every_of_nothing: Fiber::<i32>::new().every(0);
    fn fib_137_heartbeat_of_nothing:
        Fiber::<i32>::new().heartbeat(Duration::ZERO), Fiber::<i32>::new().heartbeat(Duration::MAX);
    fn fib_158_range_by_an_order_upside_down: Fiber::new().range_by(2, 1, i32::cmp);
    fn fib_159_range_upside_down: Fiber::new().range(2, 1), Fiber::new().range(f64::NAN, f64::NAN);
    fn fib_168_rolling_over_nothing: Fiber::new().rolling(0, 0, |sum, value| sum + value);
    fn fib_174_steady_for_nothing: Fiber::<i32>::new().steady(0);
    fn fib_176_streak_of_nothing: Fiber::new().streak(0, is_negative);
    fn fib_180_tumble_of_nothing: Fiber::new().tumble(0, 0, |sum, value| sum + value);
}
