//! A function that panics loses one value; what an operator remembers afterwards is what its
//! documentation states.

#![allow(clippy::trivially_copy_pass_by_ref, reason = "operators show values by reference")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;

use tidemark_circuit::{Fiber, Flow, Receptor, Recipe, Site};

/// The value with which functions panic.
const BAD: i32 = 99;

/// Outputs of a fresh attachment, with panics caught as a circuit catches them.
fn outputs<O: Send + 'static>(
    recipe: &impl Recipe<In = i32, Out = O>,
    values: impl IntoIterator<Item = i32>,
) -> Vec<O> {
    let (sender, out) = mpsc::channel();
    let mut receptor = recipe.attach(&Site::detached(), move |value| _ = sender.send(value)).unwrap();
    for value in values {
        let _ = catch_unwind(AssertUnwindSafe(|| receptor.receive(value)));
    }
    out.try_iter().collect()
}

/// Returns a value that is not bad.
fn good(value: &i32) -> i32 {
    assert_ne!(*value, BAD, "a bad value");
    *value
}

#[test]
fn a_decision_that_was_not_made_changes_nothing() {
    let guard_from = Fiber::new().guard_from(0, |last, value| good(value) > *last);
    assert_eq!(outputs(&guard_from, [5, BAD, 4, 6]), [5, 6]);
    assert_eq!(outputs(&Fiber::new().take_while(|value| good(value) < 5), [1, BAD, 2, 5, 3]), [1, 2]);
    assert_eq!(outputs(&Fiber::new().drop_while(|value| good(value) < 5), [1, BAD, 2, 5, 3]), [5, 3]);
    assert_eq!(outputs(&Fiber::new().change(good), [1, BAD, 1, 2]), [1, 2]);
    assert_eq!(outputs(&Fiber::new().pulse(|value| good(value) > 5), [7, BAD, 7, 1, BAD, 7]), [7, 7]);
    let hysteresis = Fiber::new().hysteresis(|value| good(value) > 5, |value| good(value) < 2);
    assert_eq!(outputs(&hysteresis, [BAD, 3, 7, BAD, 3, 1, 3]), [7, 3]);
    let steady = Fiber::new().steady_by(3, |first, value| good(value) == *first).unwrap();
    assert_eq!(outputs(&steady, [4, 4, BAD, 4, 4]), [4]);
    assert_eq!(outputs(&Fiber::new().streak(2, |value| good(value) < 0).unwrap(), [-1, BAD, -2]), [-2]);
    let order = |left: &i32, right: &i32| good(left).cmp(&good(right));
    assert_eq!(outputs(&Fiber::new().high_by(order), [5, BAD, 4, 6]), [5, 6]);
    assert_eq!(outputs(&Fiber::new().low_by(order), [5, BAD, 6, 4]), [5, 4]);
}

#[test]
fn a_result_that_was_not_computed_leaves_the_one_before() {
    let add = |sum: &i32, value: &i32| sum + good(value);
    assert_eq!(outputs(&Fiber::new().reduce(0, add), [1, BAD, 2]), [1, 3]);
    assert_eq!(outputs(&Fiber::new().tumble(2, 0, add).unwrap(), [1, BAD, 2, 3, 4]), [3, 7]);
    assert_eq!(outputs(&Fiber::new().integrate(0, add, |sum| *sum >= 3), [1, BAD, 2]), [3]);
    assert_eq!(outputs(&Flow::new().scan(|| 0, |sum, value| *sum += good(value)), [1, BAD, 2]), [1, 3]);
}

#[test]
fn a_history_of_inputs_goes_on() {
    let edge = Fiber::new().edge(0, |before, value| good(value) > *before);
    assert_eq!(outputs(&edge, [1, BAD, 2, 3]), [1, 3]);
    let relate = Fiber::new().relate(0, |before, value| good(value) - before);
    assert_eq!(outputs(&relate, [1, BAD, 100]), [1, 1]);
    let rolling = Fiber::new().rolling(2, 0, |sum, value| sum + good(value)).unwrap();
    assert_eq!(outputs(&rolling, [1, 2, BAD, 3, 4]), [3, 7]);
    let window = Flow::new().window(2).unwrap().map(|window| window.iter().map(good).sum::<i32>());
    assert_eq!(outputs(&window, [1, BAD, 2, 3]), [1, 5]);
}

#[test]
fn what_was_accumulated_stays_if_the_decision_to_fire_panics() {
    let fiber = Fiber::new().integrate(0, |sum, value| sum + value, |sum| good(sum) >= 100);
    assert_eq!(outputs(&fiber, [90, 9, 1]), [100]);
}

#[test]
fn a_panic_further_on_does_not_disturb_the_operators_before() {
    let fiber = Fiber::new().every(2).unwrap().diff().limit(3).replace(|value| good(&value));
    assert_eq!(outputs(&fiber, [0, 1, 0, BAD, 0, BAD, 0, 2, 0, 3]), [1, 2]);
}
