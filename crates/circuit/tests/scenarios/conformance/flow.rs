//! Flow: operators that may change the type of the values.

#![allow(clippy::trivially_copy_pass_by_ref, reason = "operators show values by reference")]

use std::f64::consts::FRAC_1_SQRT_2;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tidemark_circuit::{
    ArgumentError, Change, Circuit, Current, Error, Extent, Fiber, Flow, Name, Pipe, Recipe, Run, Site,
    Window, name,
};

use super::attached::{Attached, Recorder, Timed, check, check_detached, observe, refusals, scenarios};

/// Scenarios that do not apply to Rust, with the reasons.
#[allow(dead_code, reason = "read as text, to see that no scenario is missing")]
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[
    ("FLO-06", "Java: there is one provider of flows"),
    ("FLO-07", "Java: absent argument"),
    ("FLO-14", "Java: there is one provider of flows"),
    ("FLO-15", "Java: absent argument"),
    ("FLO-20", "Java: absent argument"),
    ("FLO-23", "Java: there is one provider of flows"),
    ("FLO-26", "Java: absent argument"),
    ("FLO-31", "Java: absent argument"),
    ("FLO-38", "Java: absent argument"),
    ("FLO-43", "Java: absent argument"),
    ("FLO-51", "Java: absent argument"),
    ("FLO-52", "Java: absent argument"),
    ("FLO-53", "Java: absent argument"),
    ("FLO-63", "Java: absent argument"),
    ("FLO-64", "Java: absent argument"),
    ("FLO-65", "Java: absent argument"),
    ("FLO-67", "Java: absent argument"),
    ("FLO-75", "the type system: a kept window does not compile, see the example of `Window`"),
    ("FLO-77", "the type system: a kept window does not compile, see the example of `Window`"),
    ("FLO-89", "the type system: negative counts do not compile"),
    ("FLO-91", "Java: absent argument"),
];

const DAY: Duration = Duration::from_hours(24);

/// Whether attaching the recipe fails.
fn fails_to_attach<R: Recipe>(recipe: &R) -> bool {
    recipe.attach(&Site::detached(), |_| ()).is_err()
}

/// Whether attaching the recipe panics.
fn panics_when_attached<R: Recipe>(recipe: &R) -> bool {
    catch_unwind(AssertUnwindSafe(|| drop(recipe.attach(&Site::detached(), |_| ())))).is_err()
}

/// A counter, and a function that increments it.
fn counter() -> (Arc<AtomicUsize>, impl Fn() + Clone + Send + Sync + 'static) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    (count, move || _ = counted.fetch_add(1, Ordering::Relaxed))
}

fn refusal() -> Error {
    ArgumentError::new("factory", "not for this subject").into()
}

// Factory and identity.

scenarios! {
    fn flo_01_a_flow_of_a_named_type: Flow::<i32>::new(), [1, 2] => [1, 2];
    fn flo_02_a_flow_without_operators_passes_all: Flow::new(), ["a", "b"] => ["a", "b"];
    fn flo_05_a_flow_made_from_a_fiber:
        Flow::from(Fiber::new().guard(|value| *value > 0)), [-1, 2, -3, 4] => [2, 4];
}

#[test]
fn flo_03_a_flow_without_operators_changes_nothing_before_or_behind_another() {
    let base = Flow::<i32>::new().map(|value| value + 1);
    check(&base.clone().flow(Flow::new()), [10], [11]);
    check(&Flow::new().flow(base), [10], [11]);
}

#[test]
fn flo_04_a_flow_runs_in_the_circuit_of_each_target() {
    let peeked = Recorder::new();
    let mut peek = peeked.receptor();
    let flow = Flow::<i32>::new().fiber(Fiber::new().diff().peek(move |_| peek(Current::here())));
    for circuit in [Circuit::new(), Circuit::new()] {
        let (out, before) = (Recorder::new(), peeked.seen().len());
        let head = circuit.pipe(out.receptor()).unwrap().prepend(&flow).unwrap();
        [7, 7].into_iter().for_each(|value| head.emit(value));
        circuit.settle().unwrap();
        assert_eq!(out.seen(), [7]);
        assert_eq!(peeked.seen()[before..], [circuit.current().clone()]);
    }
}

// Change.

#[test]
fn flo_08_run_counts_up_and_change_says_how_far_it_came() {
    let inputs = [1, 1, 1, 2, 2, 3];
    check(&Flow::new().run().map(|run| run.length), inputs, [1, 2, 3, 1, 2, 1]);
    check(&Flow::new().change().map(|change| change.length), inputs, [3, 2]);
}

scenarios! {
    fn flo_09_the_first_value_is_no_change: Flow::new().change(), [7] => Vec::<Change<i32>>::new();
    fn flo_10_changes_are_values_of_their_own: Flow::new().change(), [1, 1, 2, 3] =>
        [Change { from: 1, to: 2, length: 2 }, Change { from: 2, to: 3, length: 1 }];
    fn flo_11_change_emits_the_run_that_ended:
        Flow::<i32>::new().change().map(|change| format!("{}->{}:{}", change.from, change.to, change.length)),
        [1, 1, 1, 2, 2, 3] => ["1->2:3", "2->3:2"];
}

// Attached fibers.

#[test]
fn flo_12_an_attached_fiber_does_what_it_does_alone() {
    let peeked = Recorder::new();
    let fiber = Fiber::new().guard(|value| *value > 0).diff().peek(peeked.peek());
    check(&Flow::new().fiber(fiber), [1, 1, -2, 3, 3], [1, 3]);
    assert_eq!(peeked.seen(), [1, 3]);
}

scenarios! {
    fn flo_13_a_fiber_then_a_map:
        Flow::<i32>::new().fiber(Fiber::new().guard(|value| *value > 0)).map(|value| format!("v:{value}")),
        [1, -2, 3] => ["v:1", "v:3"];
}

// Factories of fibers.

/// Attaches the flow to a pipe of each name.
fn attach_to(flow: &impl Recipe<In = i32, Out = i32>, names: &[Name]) {
    let circuit = Circuit::new();
    let conduit = circuit.conduit().unwrap();
    for name in names {
        conduit.get(*name).prepend(flow).unwrap();
    }
}

#[test]
fn flo_16_a_factory_of_fibers_is_given_the_subject_of_the_pipe_behind() {
    let subjects = Recorder::new();
    let note = subjects.receptor();
    let flow = Flow::<i32>::new().fiber_for(move |subject| {
        note.clone()(subject.name());
        Ok(Fiber::new())
    });
    let names = [name!("alpha"), name!("beta")];
    attach_to(&flow, &names);
    assert_eq!(subjects.seen(), names);
}

#[test]
fn flo_17_a_factory_of_fibers_is_called_once_for_each_attachment() {
    let (calls, count) = counter();
    let flow = Flow::<i32>::new().fiber_for(move |_| {
        count();
        Ok(Fiber::new())
    });
    for _ in 0..3 {
        check(&flow, [1, 2], [1, 2]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn flo_18_what_a_factory_allocates_belongs_to_one_attachment() {
    let flow = Flow::<i32>::new().fiber_for(|_| {
        let mut sum = 0;
        Ok(Fiber::new().replace(move |value| {
            sum += value;
            sum
        }))
    });
    let (a, b) = (Attached::of(&flow), Attached::of(&flow));
    for value in [1, 2] {
        a.emit(value);
        b.emit(value * 10);
    }
    assert_eq!(a.seen(), [1, 3]);
    assert_eq!(b.seen(), [10, 30]);
}

#[test]
fn flo_19_fibers_of_a_factory_have_their_own_state() {
    assert_own_diff(&Flow::<i32>::new().fiber_for(|_| Ok(Fiber::new().diff())));
}

/// Checks that each attachment drops its own repetitions only.
#[track_caller]
fn assert_own_diff(flow: &impl Recipe<In = i32, Out = i32>) {
    let (a, b) = (Attached::of(flow), Attached::of(flow));
    for value in [1, 1, 2] {
        a.emit(value);
        b.emit(value);
    }
    assert_eq!(a.seen(), [1, 2]);
    assert_eq!(b.seen(), [1, 2]);
}

#[test]
fn flo_21_a_factory_without_a_fiber_fails_the_attachment() {
    assert!(fails_to_attach(&Flow::<i32>::new().fiber_for(|_| None::<Fiber<i32>>.ok_or_else(refusal))));
}

#[test]
fn flo_22_a_failing_factory_of_fibers_is_seen_by_the_attaching_caller() {
    let flow = Flow::<i32>::new().fiber_for(|_| Ok(Fiber::new().every(0)?));
    let fault = flow.attach(&Site::detached(), |_| ()).err().expect("an interval of nothing");
    assert!(fault.message().contains("every"), "{fault}");
    let flow = Flow::<i32>::new().fiber_for(|_| -> Result<Fiber<i32>, Error> { panic!("no fiber") });
    assert!(panics_when_attached(&flow));
}

// Composition.

scenarios! {
    fn flo_24_composed_flows_change_the_type_twice:
        Flow::<i32>::new()
            .map(|value| value.to_string())
            .flow(Flow::new().map(|text: String| !text.is_empty())),
        [7, 0] => [true, true];
    fn flo_27_composed_flows_apply_from_left_to_right:
        Flow::<i32>::new().map(|value| value + 1).flow(Flow::new().map(|value| format!("v:{value}"))),
        [1, 2, 3] => ["v:2", "v:3", "v:4"];
}

#[test]
fn flo_25_attachments_of_a_composed_flow_are_independent() {
    assert_own_diff(&Flow::new().flow(Flow::new().fiber(Fiber::new().diff())));
}

// Factories of flows.

#[test]
fn flo_28_a_factory_of_flows_is_given_the_subject_of_the_pipe_behind() {
    let subjects = Recorder::new();
    let note = subjects.receptor();
    let flow = Flow::<i32>::new().flow_for(move |subject| {
        note.clone()(subject.name());
        Ok(Flow::new())
    });
    let names = [name!("alpha"), name!("beta")];
    attach_to(&flow, &names);
    assert_eq!(subjects.seen(), names);
}

#[test]
fn flo_29_a_factory_of_flows_is_called_once_for_each_attachment() {
    let (calls, count) = counter();
    let flow = Flow::<i32>::new().flow_for(move |_| {
        count();
        Ok(Flow::new())
    });
    for _ in 0..3 {
        check(&flow, [1, 2], [1, 2]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn flo_30_flows_of_a_factory_have_their_own_state() {
    assert_own_diff(&Flow::<i32>::new().flow_for(|_| Ok(Flow::new().fiber(Fiber::new().diff()))));
}

#[test]
fn flo_32_a_factory_without_a_flow_fails_the_attachment() {
    assert!(fails_to_attach(&Flow::<i32>::new().flow_for(|_| None::<Flow<i32>>.ok_or_else(refusal))));
}

#[test]
fn flo_33_a_failing_factory_of_flows_is_seen_by_the_attaching_caller() {
    let flow = Flow::<i32>::new().flow_for(|_| Ok(Flow::new().window(0)?.map(|window| window.len())));
    let fault = flow.attach(&Site::detached(), |_| ()).err().expect("a window of nothing");
    assert!(fault.message().contains("window"), "{fault}");
    let flow = Flow::<i32>::new().flow_for(|_| -> Result<Flow<i32>, Error> { panic!("no flow") });
    assert!(panics_when_attached(&flow));
}

scenarios! {
    fn flo_34_a_factory_of_flows_may_change_the_type:
        Flow::<i32>::new().flow_for(|_| Ok(Flow::new().map(|value| format!("v:{value}")))),
        [1, 42] => ["v:1", "v:42"];
}

// Map.

#[test]
fn flo_35_the_head_of_a_chain_within_the_pipes_behind_it() {
    let circuit = Circuit::new();
    let tail = circuit.pipe(|_: String| ()).unwrap();
    let middle = tail.prepend(&Flow::<i32>::new().map(|value| value.to_string())).unwrap();
    let head = middle.prepend(&Flow::<i32>::new().map(|value| value + 1)).unwrap();
    assert!(head.subject().within(middle.subject()));
    assert!(head.subject().within(tail.subject()));
    assert!(!tail.subject().within(head.subject()));
}

scenarios! {
    fn flo_36_a_map_to_nothing_drops:
        Flow::<i32>::new().filter_map(|value| (value > 0).then(|| format!("+{value}"))),
        [1, -2, 3, -4] => ["+1", "+3"];
    fn flo_37_map_changes_the_type:
        Flow::<i32>::new().map(|value| format!("v:{value}")), [1, 42] => ["v:1", "v:42"];
}

// Relate.

scenarios! {
    fn flo_39_relate_may_give_nothing:
        Flow::<i32>::new().filter_relate(Some(0), |before, value| {
            let before = before?;
            (before != value).then(|| format!("{before}->{value}"))
        }),
        [0, 1, 1, 2] => ["0->1", "1->2"];
    fn flo_40_relate_goes_on_when_nothing_comes_out:
        Flow::<i32>::new().filter_relate(Some(0), |before, value| {
            (value % 2 == 1).then(|| format!("{},{value}", before.unwrap()))
        }),
        [2, 3, 4, 5] => ["2,3", "4,5"];
    fn flo_41_relate_begins_with_the_given_value:
        Flow::<i32>::new().relate(100, |before, value| format!("{before}:{value}")),
        [7, 8] => ["100:7", "7:8"];
    fn flo_42_relate_may_begin_with_nothing:
        Flow::<i32>::new().filter_relate(None, |before, value| {
            Some(format!("{}->{value}", before.map_or("null".to_owned(), ToString::to_string)))
        }),
        [1, 2] => ["null->1", "1->2"];
    fn flo_44_relate_goes_on_when_its_function_panics:
        Flow::<i32>::new().relate(0, |before, value| {
            assert_ne!(*value, 2);
            format!("{before}->{value}")
        }),
        [1, 2, 3] => ["0->1", "2->3"];
}

// Run.

scenarios! {
    fn flo_45_run_counts_each_value:
        Flow::<i32>::new().run().map(|run| format!("{}:{}", run.value, run.length)),
        [7, 7, 7, 9, 7] => ["7:1", "7:2", "7:3", "9:1", "7:1"];
    fn flo_47_runs_are_values_of_their_own: Flow::new().run(), [4, 4] =>
        [Run { value: 4, length: 1 }, Run { value: 4, length: 2 }];
    fn flo_48_the_first_run_has_length_one: Flow::new().run(), [4] => [Run { value: 4, length: 1 }];
}

#[test]
fn flo_46_runs_are_counted_for_each_attachment() {
    let flow = Flow::new().run().map(|run| run.length);
    let (a, b) = (Attached::of(&flow), Attached::of(&flow));
    a.emit(5);
    a.emit(5);
    b.emit(9);
    a.emit(5);
    assert_eq!(a.seen(), [1, 2, 3]);
    assert_eq!(b.seen(), [1]);
}

// Scan.

fn add(sum: &mut i32, value: &i32) {
    *sum += value;
}

fn count_unless_negative(count: &mut i32, value: &i32) {
    assert!(*value >= 0);
    *count += 1;
}

/// As [`count_unless_negative`], but counts before it checks.
fn count_and_refuse_negative(count: &mut i32, value: &i32) {
    *count += 1;
    assert!(*value >= 0);
}

fn unless_two(state: &i32) -> i32 {
    assert_ne!(*state, 2);
    *state
}

/// The mean and the sum of squared differences from it, updated with each value (Welford's
/// algorithm).
#[derive(Default)]
struct Deviation {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Deviation {
    fn add(&mut self, value: &f64) {
        self.count += 1.0;
        let from_mean = value - self.mean;
        self.mean += from_mean / self.count;
        self.squares += from_mean * (value - self.mean);
    }

    /// How many standard deviations this value differs from the mean, both over the values so far.
    fn score(&self, value: f64) -> Option<f64> {
        (self.count > 1.0).then(|| (value - self.mean) / (self.squares / (self.count - 1.0)).sqrt())
    }
}

#[test]
fn flo_54_a_step_that_panics_keeps_the_state() {
    let count = |count: &i32, _| *count;
    let flow = Flow::new().scan_map(|| 0, count_unless_negative, count);
    check(&flow, [10, -1, 20], [1, 2]);
    check_detached(&flow, [10, -1, 20], [1, 2]);
    // A step changes the state in place: changes made before a panic stay.
    let flow = Flow::new().scan_map(|| 0, count_and_refuse_negative, count);
    check(&flow, [10, -1, 20], [1, 3]);
    check_detached(&flow, [10, -1, 20], [1, 3]);
}

#[test]
fn flo_71_a_step_that_panics_keeps_the_state_that_is_the_output() {
    let flow = Flow::new().scan(|| 0, count_unless_negative);
    check(&flow, [10, -1, 20], [1, 2]);
    check_detached(&flow, [10, -1, 20], [1, 2]);
    // As above: nothing is emitted for the -1, and its change stays.
    let flow = Flow::new().scan(|| 0, count_and_refuse_negative);
    check(&flow, [10, -1, 20], [1, 3]);
    check_detached(&flow, [10, -1, 20], [1, 3]);
}

scenarios! {
    fn flo_49_scan_emits_what_the_input_decides:
        Flow::new().scan_filter_map(|| 0, add, |sum, value| (value % 2 == 1).then_some(*sum)),
        [1, 2, 3, 4] => [1, 6];
    fn flo_50_a_step_is_done_even_if_its_emission_panics:
        Flow::new().scan_map(|| 0, count_unless_negative, |count, _| unless_two(count)), [7, 7, 7] => [1, 3];
    fn flo_56_scan_shows_state_and_input:
        Flow::new().scan_map(|| 0, add, |sum, value| format!("sum={sum},cur={value}")),
        [5, 10, 7] => ["sum=5,cur=5", "sum=15,cur=10", "sum=22,cur=7"];
    fn flo_59_scan_emits_nothing_until_it_is_ready:
        Flow::new().scan_filter_map(
            || (0, 0),
            |state: &mut (i32, i32), value| *state = (state.0 + 1, state.1 + value),
            |(count, sum), _| (*count >= 3).then_some(*sum),
        ),
        [1, 2, 3, 4] => [6, 10];
    fn flo_60_a_failed_emission_does_not_roll_the_state_back:
        Flow::new().scan_map(|| 0, |count, _: &i32| *count += 1, |count, _| unless_two(count)),
        [7, 7, 7] => [1, 3];
    fn flo_61_scan_between_other_operators:
        Flow::<i32>::new()
            .map(|value| value * 2)
            .scan(|| 0, add)
            .map(|sum| format!("sum={sum}"))
            .fiber(Fiber::new().diff()),
        [1, 2, 0, 3] => ["sum=2", "sum=6", "sum=12"];
    fn flo_66_running_mean:
        Flow::<f64>::new().scan_map(
            || (0.0, 0.0),
            |state: &mut (f64, f64), value| *state = (state.0 + 1.0, state.1 + value),
            |(count, sum), _| sum / count,
        ),
        [10.0, 20.0, 30.0] => [10.0, 15.0, 20.0];
    fn flo_69_the_state_is_the_output:
        Flow::new().scan(|| (0, 0), |state: &mut (i32, i32), value| *state = (state.0 + 1, state.1 + value)),
        [2, 3, -1] => [(1, 2), (2, 5), (3, 4)];
    fn flo_70_an_absent_state_is_shown_as_absent:
        Flow::<i32>::new().scan_filter_map(
            || Some(String::new()),
            |state: &mut Option<String>, value| {
                let text = state.take().unwrap_or_else(|| "null".to_owned());
                *state = (*value > 0).then(|| format!("{text}{value}"));
            },
            |state, _| state.clone(),
        ),
        [1, -2, 3] => ["1", "null3"];
    fn flo_73_the_seed_may_be_absent:
        Flow::<i32>::new().scan_filter_map(
            || None,
            |state: &mut Option<String>, value| {
                let text = state.take();
                *state = Some(text.map_or(format!("first:{value}"), |text| format!("{text},+{value}")));
            },
            |state, _| state.clone(),
        ),
        [1, 2, 3] => ["first:1", "first:1,+2", "first:1,+2,+3"];
}

#[test]
fn flo_55_a_failing_seed_of_scan_map_is_seen_by_the_attaching_caller() {
    assert!(panics_when_attached(&Flow::new().scan_map(|| panic!("no seed"), add, |sum, _| *sum)));
}

#[test]
fn flo_57_running_score() {
    let flow = Flow::<f64>::new().scan_filter_map(Deviation::default, Deviation::add, Deviation::score);
    let scores = observe(&flow, [10.0, 12.0, 14.0]);
    assert_eq!(scores.len(), 2);
    assert!((scores[0] - FRAC_1_SQRT_2).abs() < 0.001 && (scores[1] - 1.0).abs() < 0.001, "{scores:?}");
}

#[test]
fn flo_58_the_seed_is_made_once_for_each_attachment() {
    let (calls, count) = counter();
    let seed = move || {
        count();
        0
    };
    let flow = Flow::new().scan(seed, add);
    for _ in 0..3 {
        check(&flow, [1, 2], [1, 3]);
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[test]
fn flo_62_the_state_belongs_to_one_attachment() {
    let flow = Flow::new().scan(|| 0, add);
    let (a, b) = (Attached::of(&flow), Attached::of(&flow));
    for value in [1, 2] {
        a.emit(value);
        b.emit(value * 100);
    }
    assert_eq!(a.seen(), [1, 3]);
    assert_eq!(b.seen(), [100, 300]);
}

#[test]
fn flo_68_the_same_state_may_come_out_each_time() {
    let flow = Flow::<i32>::new().scan(|| Arc::new("state"), |_, _| ());
    let states = observe(&flow, [1, 2]);
    assert!(Arc::ptr_eq(&states[0], &states[1]));
}

#[test]
fn flo_72_a_factory_makes_the_seed_for_the_subject() {
    let flow = Flow::<i32>::new().flow_for(|subject| {
        let seed = if subject.name() == name!("alpha") { 1000 } else { 0 };
        Ok(Flow::new().scan(move || seed, add))
    });
    let circuit = Circuit::new();
    for (name, sum) in [(name!("alpha"), 1001), (name!("beta"), 1)] {
        let out = Recorder::new();
        let head = circuit.named(name).pipe(out.receptor()).unwrap().prepend(&flow).unwrap();
        head.emit(1);
        circuit.settle().unwrap();
        assert_eq!(out.seen(), [sum]);
    }
}

#[test]
fn flo_74_a_failing_seed_of_scan_is_seen_by_the_attaching_caller() {
    assert!(panics_when_attached(&Flow::new().scan(|| panic!("no seed"), add)));
}

// Window.

/// The contents of a view of the last `count` values.
fn views(
    count: usize,
    inputs: impl IntoIterator<Item = i32>,
    view: fn(Window<'_, i32>) -> Window<'_, i32>,
) -> Vec<Vec<i32>> {
    let flow = Flow::new().window(count).unwrap().map(move |window| values(view(window)));
    observe(&flow, inputs)
}

/// The results of a function for the last three values of 1, 2, 3, 4.
fn of_three<T: Clone + Send + Sync + 'static>(function: fn(Window<'_, i32>) -> T) -> Vec<T> {
    observe(&Flow::new().window(3).unwrap().map(function), 1..=4)
}

fn values(window: Window<'_, i32>) -> Vec<i32> {
    window.iter().copied().collect()
}

/// Checks what a view of the last values of 1, 2, 3 ... shows; each expected string is one window.
#[track_caller]
fn check_views(count: usize, upto: i32, view: fn(Window<'_, i32>) -> Window<'_, i32>, expected: &[&str]) {
    let seen: Vec<String> = views(count, 1..=upto, view)
        .iter()
        .map(|window| window.iter().map(ToString::to_string).collect())
        .collect();
    assert_eq!(seen, expected);
}

#[test]
fn flo_76_a_window_holds_what_came_through() {
    let flow = Flow::<i32>::new()
        .filter_map(|value| (value > 0).then(|| format!("v:{value}")))
        .window(2)
        .unwrap()
        .map(|window| window.iter().cloned().collect::<Vec<_>>().join(" "));
    check(&flow, [1, -2, 3, 4], ["v:1", "v:1 v:3", "v:3 v:4"]);
}

#[test]
fn flo_78_a_window_of_a_long_time_is_bounded_by_its_count() {
    let flow = Flow::new().window_duration(DAY, 2).unwrap().map(values);
    check(&flow, [1, 2, 3], [vec![1], vec![1, 2], vec![2, 3]]);
}

#[test]
fn flo_79_views_of_views() {
    check_views(5, 6, |window| window.prefix(4).suffix(2), &["1", "12", "23", "34", "34", "45"]);
    check_views(5, 6, |window| window.suffix(4).prefix(2), &["1", "12", "12", "12", "23", "34"]);
}

#[test]
fn flo_80_sizes_of_views() {
    assert_eq!(of_three(|window| window.len()), [1, 2, 3, 3]);
    assert_eq!(of_three(|window| window.prefix(2).len()), [1, 2, 2, 2]);
    assert_eq!(of_three(|window| window.slice(2, 2).len()), [0, 0, 1, 1]);
    assert_eq!(of_three(|window| window.skip(1).len()), [0, 1, 2, 2]);
    assert_eq!(of_three(|window| window.trim(1).len()), [0, 1, 2, 2]);
    assert_eq!(of_three(|window| window.reverse().len()), [1, 2, 3, 3]);
}

#[test]
fn flo_81_a_window_of_two() {
    check_views(2, 3, |window| window, &["1", "12", "23"]);
}

#[test]
fn flo_82_an_empty_view() {
    let empty = of_three(|window| {
        let empty = window.prefix(0);
        let found = (empty.all(|_| false), empty.any(|_| true), empty.none(|_| true), empty.is_empty());
        (empty.reduce(7, |a, b| a + b), empty.fold("seed", |_, _| "value"), empty.count(|_| true), found)
    });
    assert_eq!(empty, [(7, "seed", 0, (true, false, true, true)); 4]);
}

#[test]
fn flo_83_values_leave_a_window_when_they_are_too_old() {
    let five_millis = Duration::from_millis(5);
    let mut timed = Timed::of(&Flow::new().window_duration(five_millis, 10).unwrap().map(values));
    timed.emit_after(Duration::ZERO, 1);
    timed.emit_after(five_millis / 2, 2);
    timed.emit_after(five_millis * 3 / 5, 3);
    timed.emit_after(five_millis * 5, 4);
    assert_eq!(timed.seen(), [vec![1], vec![1, 2], vec![2, 3], vec![4]]);
}

#[test]
fn flo_84_first_and_last() {
    let ends = |window: Window<'_, i32>| (window.first().copied(), window.last().copied());
    assert_eq!(
        of_three(ends),
        [(1, 1), (1, 2), (1, 3), (2, 4)].map(|(first, last)| (Some(first), Some(last)))
    );
    let reversed = of_three(|window| (window.reverse().first().copied(), window.reverse().last().copied()));
    assert_eq!(reversed, [(1, 1), (2, 1), (3, 1), (4, 2)].map(|(first, last)| (Some(first), Some(last))));
    assert_eq!(
        of_three(|window| (window.skip(9).first().copied(), window.skip(9).last().copied())),
        [(None, None); 4]
    );
}

#[test]
fn flo_85_prefixes_and_suffixes() {
    check_views(4, 6, |window| window.prefix(2), &["1", "12", "12", "12", "23", "34"]);
    check_views(4, 6, |window| window.suffix(2), &["1", "12", "23", "34", "45", "56"]);
    check_views(4, 6, |window| window.prefix(0), &[""; 6]);
    check_views(4, 6, |window| window.suffix(0), &[""; 6]);
    assert_eq!(of_three(|window| window.prefix(10) == window && window.suffix(10) == window), [true; 4]);
}

#[test]
fn flo_86_prefixes_and_suffixes_are_those_of_the_newest_window() {
    check_views(3, 5, |window| window.prefix(2), &["1", "12", "12", "23", "34"]);
    check_views(3, 5, |window| window.suffix(2), &["1", "12", "23", "34", "45"]);
}

refusals! {
    fn flo_87_windows_of_no_time_or_no_room:
        Flow::<i32>::new().window_duration(Duration::ZERO, 1),
        Flow::<i32>::new().window_duration(Duration::MAX, 1),
        Flow::<i32>::new().window_duration(DAY, 0);
    fn flo_90_a_window_of_nothing: Flow::<i32>::new().window(0);
}

#[test]
fn flo_88_windows_belong_to_one_attachment() {
    let flow = Flow::new().window(2).unwrap().map(values);
    let (a, b) = (Attached::of(&flow), Attached::of(&flow));
    a.emit(1);
    b.emit(10);
    a.emit(2);
    assert_eq!(a.seen(), [vec![1], vec![1, 2]]);
    assert_eq!(b.seen(), [vec![10]]);
}

#[test]
#[allow(clippy::redundant_closure_for_method_calls, reason = "the method alone is for one lifetime only")]
fn flo_92_reversed() {
    check_views(4, 5, |window| window.reverse(), &["1", "21", "321", "4321", "5432"]);
}

#[test]
fn flo_93_the_oldest_first() {
    check_views(3, 5, |window| window, &["1", "12", "123", "234", "345"]);
}

#[test]
fn flo_94_a_window_does_not_change_while_it_is_seen() {
    let again: Arc<OnceLock<Pipe<i32>>> = Arc::default();
    let knot = Arc::clone(&again);
    let flow = Flow::new().window(3).unwrap().map(move |window: Window<'_, i32>| {
        if *window.last().unwrap() == 1 {
            knot.get().unwrap().emit(2);
        }
        values(window)
    });
    let attached = Attached::of(&flow);
    again.set(attached.head.clone()).unwrap();
    attached.emit(1);
    assert_eq!(attached.seen(), [vec![1], vec![1, 2]]);
}

#[test]
fn flo_95_slices_and_reversed_views() {
    check_views(3, 5, |window| window.slice(1, 2), &["", "2", "23", "34", "45"]);
    check_views(3, 5, |window| window.skip(1), &["", "2", "23", "34", "45"]);
    check_views(3, 5, |window| window.trim(1), &["", "1", "12", "23", "34"]);
    check_views(3, 5, |window| window.reverse().prefix(2), &["1", "21", "32", "43", "54"]);
    check_views(3, 5, |window| window.reverse().suffix(2), &["1", "21", "21", "32", "43"]);
    check_views(3, 5, |window| window.reverse().skip(1), &["", "1", "21", "32", "43"]);
    check_views(3, 5, |window| window.reverse().trim(1), &["", "2", "32", "43", "54"]);
}

#[test]
fn flo_96_what_can_be_asked_of_a_window() {
    assert_eq!(of_three(|window| window.reduce(0, |a, b| a + b)), [1, 3, 6, 9]);
    assert_eq!(of_three(|window| window.reduce(1, |a, b| a * b)), [1, 2, 6, 24]);
    assert_eq!(
        of_three(|window| window.fold(String::new(), |text, value| format!("{text}{value}"))),
        ["1", "12", "123", "234"]
    );
    assert_eq!(of_three(|window| window.count(|value| value % 2 == 0)), [0, 1, 1, 2]);
    assert_eq!(of_three(|window| window.any(|value| value % 2 == 1)), [true; 4]);
    assert_eq!(of_three(|window| window.all(|value| *value > 0)), [true; 4]);
    assert_eq!(of_three(|window| window.none(|value| *value < 0)), [true; 4]);
    assert_eq!(of_three(|window| window.is_empty()), [false; 4]);
}
