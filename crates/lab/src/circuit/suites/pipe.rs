//! `PipeOps`, the rows that enter no circuit: cost of a value's path through receptors and
//! operators alone.
//!
//! The original creates such pipes without a circuit and calls them on the caller's thread. Here
//! they are receptors. `emission.rs` has the same paths within a circuit.

use crate::micro::benchmark::{Benchmark, Work, each, several};
use std::hint::black_box;
use tidemark_circuit::operator::{Part, Plan};
use tidemark_circuit::{BoxedFiber, FanOut, Fault, Fiber, Flow, Receptor};

/// Values that the original's rows emit per call.
const VALUES: u64 = 10;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = vec![
        Benchmark::new(
            "PipeOps.emit_to_empty_pipe",
            "a call of a receptor that does nothing; no circuit",
            |_| receiving(|_: u64| {}),
        )
        .at_most(0.5)
        .in_summary(),
        Benchmark::new(
            "PipeOps.emit_to_receptor_pipe",
            "a call of a receptor that adds up, of a type that the compiler knows; no circuit",
            |_| receiving(Sum::default()),
        )
        .at_most(0.7)
        .in_summary(),
        Benchmark::new(
            "PipeOps.emit_to_receptor_pipe_boxed",
            "the same receptor behind a trait object; no circuit",
            |_| receiving_boxed(Box::new(Sum::default())),
        )
        .at_most(2.0)
        .in_summary(),
        Benchmark::new(
            "PipeOps.emit_no_await",
            "ten calls of a receptor that does nothing, each; no circuit, so nothing to await: see emit_no_await_batch",
            |_| {
                let mut receptor = |_: u64| {};
                several(VALUES, move |first| emit_ten(&mut receptor, first))
            },
        ),
        Benchmark::new(
            "PipeOps.emit_to_transform_pipe",
            "a flow of one map ahead of a receptor that adds up, made before; no circuit",
            |_| receiving(Flow::new().map(|value: u64| value.wrapping_mul(2)).receptor(Sum::default())?),
        ),
        Benchmark::new(
            "PipeOps.emit_to_double_transform",
            "making a flow of two maps and attaching it, then one value through it; no circuit",
            |_| {
                each(|value| {
                    let flow = Flow::new()
                        .map(|value: u64| value.wrapping_add(1))
                        .map(|value: u64| value.wrapping_mul(2));
                    let mut receptor = flow.receptor(Sum::default())?;
                    receptor.receive(value);
                    anyhow::Ok(receptor)
                })
            },
        ),
        Benchmark::new(
            "PipeOps.emit_to_chained_pipes",
            "two maps, each attached by itself ahead of the next, behind trait objects, made before; no circuit",
            |_| {
                let last: Box<dyn Receptor<u64>> = Box::new(Sum::default());
                let second = Flow::new().map(|value: u64| value.wrapping_mul(2)).receptor(Dynamic(last))?;
                let first = Flow::new()
                    .map(|value: u64| value.wrapping_add(1))
                    .receptor(Dynamic(Box::new(second)))?;
                receiving_boxed(Box::new(first))
            },
        ),
        Benchmark::new(
            "PipeOps.emit_to_fanout",
            "a receptor that makes three receptors behind trait objects and gives each the value; no circuit",
            |_| {
                receiving(|value: u64| {
                    for _ in 0..3 {
                        let target: Box<dyn Receptor<u64>> = Box::new(Sum::default());
                        black_box(target).receive(value);
                    }
                })
            },
        ),
    ];
    for depth in [1, 5, 10, 20] {
        all.extend(chain(depth));
    }
    for width in [1, 5, 10, 20] {
        all.extend(fan_out(width));
    }
    all
}

/// Rows of a chain: created in each call as in the original, and created once.
fn chain(depth: u64) -> [Benchmark; 5] {
    let name = format!("PipeOps.emit_chain_depth_{depth}");
    let built = Benchmark::new(
        name.clone(),
        format!(
            "attaching {depth} operators, each by itself ahead of the next, behind trait objects, then ten values through them, \
             a value; no circuit"
        ),
        move |_| {
            several(VALUES, move |first| {
                let mut receptor = boxed_chain(depth)?;
                emit_ten(&mut receptor, first);
                anyhow::Ok(receptor)
            })
        },
    );
    let fixed = Benchmark::new(
        format!("{name}_static"),
        format!(
            "a value through a fiber of {depth} operators, of one type that the compiler knows; no circuit"
        ),
        move |_| match depth {
            1 => receiving(Fiber::new().replace(step(1)).receptor(Sum::default())?),
            5 => receiving(five(1).receptor(Sum::default())?),
            10 => receiving(five(1).fiber(five(6)).receptor(Sum::default())?),
            _ => receiving(five(1).fiber(five(6)).fiber(five(11)).fiber(five(16)).receptor(Sum::default())?),
        },
    );
    let boxed = Benchmark::new(
        format!("{name}_boxed"),
        format!(
            "a value through {depth} operators, each attached by itself ahead of the next, behind trait objects; no circuit"
        ),
        move |_| receiving(boxed_chain(depth)?),
    );
    let boxed_fiber = Benchmark::new(
        format!("{name}_boxed_fiber"),
        format!(
            "a value through a fiber of {depth} operators that was boxed behind each of them; no circuit"
        ),
        move |_| receiving(nested_fiber(depth).receptor(Sum::default())?),
    );
    let floor = Benchmark::new(
        format!("{name}_closures"),
        format!(
            "a value through {depth} nested closures in boxes, without this crate: what such calls cost here at least"
        ),
        move |_| each(closures(depth)),
    );
    let is_target = depth == 20;
    let fixed = if is_target { fixed.at_most(3.0).in_summary() } else { fixed };
    let boxed = if is_target { boxed.at_most(15.0).in_summary() } else { boxed };
    let floor = if is_target { floor.in_summary() } else { floor };
    [built, fixed, boxed, boxed_fiber, floor]
}

/// Rows of a fan-out: created in each call as in the original, and created once.
fn fan_out(width: usize) -> [Benchmark; 4] {
    let name = format!("PipeOps.emit_fanout_width_{width}");
    let built = Benchmark::new(
        name.clone(),
        format!(
            "making {width} receptors behind trait objects, then ten values to each of them, a value; no circuit"
        ),
        move |_| {
            several(VALUES, move |first| {
                let mut receptor = boxed_fan_out(width);
                emit_ten(&mut receptor, first);
                receptor
            })
        },
    );
    let fixed = Benchmark::new(
        format!("{name}_static"),
        format!("a value to {width} receptors of one type that the compiler knows; no circuit"),
        move |_| match width {
            1 => receiving(FanOut([Sum::default(); 1])),
            5 => receiving(FanOut([Sum::default(); 5])),
            10 => receiving(FanOut([Sum::default(); 10])),
            _ => receiving(FanOut([Sum::default(); 20])),
        },
    );
    let boxed = Benchmark::new(
        format!("{name}_boxed"),
        format!("a value to {width} receptors, each behind a trait object; no circuit"),
        move |_| receiving(boxed_fan_out(width)),
    );
    let floor = Benchmark::new(
        format!("{name}_closures"),
        format!(
            "a value to {width} closures in boxes, without this crate: what such calls cost here at least"
        ),
        move |_| {
            let mut closures: Vec<Closure> = (0..width).map(|_| summing()).collect();
            each(move |value| closures.iter_mut().for_each(|closure| closure(value)))
        },
    );
    if width == 20 {
        [built, fixed.at_most(3.0).in_summary(), boxed.at_most(20.0).in_summary(), floor.in_summary()]
    } else {
        [built, fixed, boxed, floor]
    }
}

/// The end of a path, which uses what arrives.
#[derive(Clone, Copy, Default)]
struct Sum(u64);

impl Receptor<u64> for Sum {
    #[inline]
    fn receive(&mut self, value: u64) {
        self.0 = self.0.wrapping_add(value);
    }
}

/// A receptor that is opaque to the optimizer.
struct Dynamic(Box<dyn Receptor<u64>>);

impl Receptor<u64> for Dynamic {
    #[inline]
    fn receive(&mut self, value: u64) {
        self.0.receive(value);
    }
}

fn boxed_fan_out(width: usize) -> FanOut<Vec<Dynamic>> {
    FanOut((0..width).map(|_| Dynamic(black_box(Box::new(Sum::default())))).collect())
}

/// A cheap operator of which several in a row cannot be folded into one.
fn step(constant: u64) -> impl FnMut(u64) -> u64 + Part {
    let constant = black_box(constant);
    move |value| (value ^ constant).wrapping_add(constant)
}

fn five(first: u64) -> Fiber<u64, impl Plan<u64, Out = u64>> {
    let fiber = Fiber::new().replace(step(first)).replace(step(first + 1)).replace(step(first + 2));
    fiber.replace(step(first + 3)).replace(step(first + 4))
}

/// Operators that call the next one through dynamic dispatch.
fn boxed_chain(depth: u64) -> Result<Dynamic, Fault> {
    let last = Dynamic(black_box(Box::new(Sum::default())));
    (0..depth).try_fold(last, |next, constant| {
        let receptor = Fiber::new().replace(step(constant)).receptor(next)?;
        Ok(Dynamic(black_box(Box::new(receptor))))
    })
}

/// A hand-written receptor that is opaque to the optimizer.
type Closure = Box<dyn FnMut(u64)>;

fn summing() -> Closure {
    let mut sum = Sum::default();
    black_box(Box::new(move |value| sum.receive(value)))
}

fn closures(depth: u64) -> Closure {
    (0..depth).fold(summing(), |mut next, constant| {
        let mut step = step(constant);
        black_box(Box::new(move |value| next(step(value))))
    })
}

fn nested_fiber(depth: u64) -> BoxedFiber<u64> {
    (0..depth).fold(Fiber::new().boxed(), |chain, constant| chain.replace(step(constant)).boxed())
}

fn receiving(mut receptor: impl Receptor<u64> + 'static) -> anyhow::Result<Work> {
    each(move |value| receptor.receive(value))
}

fn receiving_boxed(receptor: Box<dyn Receptor<u64>>) -> anyhow::Result<Work> {
    receiving(Dynamic(black_box(receptor)))
}

#[inline]
fn emit_ten(receptor: &mut impl Receptor<u64>, first: u64) {
    for value in first..first + VALUES {
        receptor.receive(black_box(value));
    }
}

#[cfg(test)]
mod tests {
    use super::{Dynamic, boxed_fan_out, five, nested_fiber, step};
    use std::sync::mpsc;
    use tidemark_circuit::{Fiber, Receptor};

    #[test]
    fn chains_of_one_length_compute_the_same_however_they_are_made() {
        let fixed = five(0).fiber(five(5)).trace([7, 8]).unwrap();
        assert_eq!(nested_fiber(10).trace([7, 8]).unwrap(), fixed);
        assert_eq!(Fiber::new().replace(step(1)).trace([8]).unwrap(), [10]);
    }

    #[test]
    fn a_fan_out_reaches_all() {
        let (sender, receiver) = mpsc::channel();
        let mut fan_out = boxed_fan_out(0);
        for number in 0..3 {
            let sender = sender.clone();
            fan_out.0.push(Dynamic(Box::new(move |value: u64| sender.send(value + number).unwrap())));
        }
        fan_out.receive(10);
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [10, 11, 12]);
    }
}
