//! Fan-out: pipes and receptors with no, one or many targets.
#![allow(unsafe_code, reason = "targets of the same circuit are run without asking in whose context that is")]

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use crate::circuit::{Circuit, Naming};
use crate::error::Fault;
use crate::execution::depth::Depth;
use crate::identity::subject::Kind;
use crate::structure::pipe::{Forward, Pipe};
use crate::subscription::receptor::Receptor;

/// A receptor that gives each value to several others, in order. Its receptors are known at compile
/// time, so twenty small ones cost about as much as one larger one. [`Circuit::fan_out`] takes
/// pipes that are known only at run time.
///
/// Takes an array, a `Vec`, a boxed slice or a pair. If a receptor panics, the others still get the
/// value, and the first panic is resumed afterwards.
///
/// ```
/// use std::sync::atomic::{AtomicU64, Ordering};
/// use tidemark_circuit::{Circuit, FanOut};
///
/// static SUM: AtomicU64 = AtomicU64::new(0);
/// let add = |factor| move |value: u64| drop(SUM.fetch_add(factor * value, Ordering::Relaxed));
///
/// let circuit = Circuit::new();
/// let pipe = circuit.pipe(FanOut([add(1), add(10), add(100)]))?;
/// pipe.emit(2);
/// circuit.settle()?;
/// assert_eq!(SUM.load(Ordering::Relaxed), 222);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FanOut<T>(pub T);

impl Circuit {
    /// Creates a pipe that drops its values, each at its place in the order.
    ///
    /// ```
    /// # use tidemark_circuit::Circuit;
    /// let circuit = Circuit::new();
    /// circuit.discard()?.emit("nobody hears this");
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn discard<E: Send + 'static>(&self) -> Result<Pipe<E>, Fault> {
        self.unnamed().discard()
    }

    /// Returns a pipe of this circuit to the target: the target itself if it is of this circuit,
    /// otherwise a new pipe that emits to it. [`Naming::forward`] always creates a new pipe.
    ///
    /// ```
    /// # use tidemark_circuit::Circuit;
    /// let (circuit, other) = (Circuit::new(), Circuit::new());
    /// let pipe = circuit.discard::<u64>()?;
    /// assert_eq!(circuit.forward(&pipe)?, pipe);
    /// assert_ne!(other.forward(&pipe)?, pipe);
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn forward<E: Send + 'static>(&self, target: &Pipe<E>) -> Result<Pipe<E>, Fault> {
        let naming = self.unnamed();
        self.machine().check_open("pipe")?;
        if target.is_of(self.machine()) { Ok(target.clone()) } else { naming.forward(target) }
    }

    /// Creates a pipe that gives its values to all targets, in order. A target that is listed twice
    /// gets each value twice. Targets of this circuit run as part of the emission, and a failing
    /// one does not affect the others; those of other circuits are emitted to. A single target is
    /// treated as by [`Circuit::forward`].
    ///
    /// ```
    /// # use std::sync::mpsc;
    /// # use tidemark_circuit::Circuit;
    /// let circuit = Circuit::new();
    /// let (sender, receiver) = mpsc::channel();
    /// let (first, second) = (sender.clone(), sender);
    /// let targets = [
    ///     circuit.pipe(move |value: u64| first.send(("first", value)).unwrap())?,
    ///     circuit.pipe(move |value: u64| second.send(("second", value)).unwrap())?,
    /// ];
    /// circuit.fan_out(&targets)?.emit(7);
    /// circuit.settle()?;
    /// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [("first", 7), ("second", 7)]);
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn fan_out<E: Clone + Send + 'static>(&self, targets: &[Pipe<E>]) -> Result<Pipe<E>, Fault> {
        match targets {
            [target] => self.forward(target),
            _ => self.unnamed().fan_out(targets),
        }
    }
}

impl Naming<'_> {
    /// See [`Circuit::discard`].
    pub fn discard<E: Send + 'static>(&self) -> Result<Pipe<E>, Fault> {
        self.pipe(drop::<E>)
    }

    /// Creates a pipe to the target, which runs as part of the emission if it is of this circuit,
    /// and is emitted to otherwise.
    pub fn forward<E: Send + 'static>(&self, target: &Pipe<E>) -> Result<Pipe<E>, Fault> {
        let subject = self.component(Kind::Pipe, "pipe")?;
        let calls = self.calls(std::slice::from_ref(target));
        let node = if calls.is_some() {
            self.node(subject, calls, target.forward())
        } else {
            self.node(subject, calls, target.clone())
        };
        Ok(Pipe::new(node))
    }

    /// See [`Circuit::fan_out`]; creates a new pipe even for a single target.
    pub fn fan_out<E: Clone + Send + 'static>(&self, targets: &[Pipe<E>]) -> Result<Pipe<E>, Fault> {
        let subject = self.component(Kind::Pipe, "pipe")?;
        let calls = self.calls(targets);
        let node = if calls.is_some() {
            let own = targets.iter().all(|target| target.is_of(self.machine()));
            let targets = Targets { all: targets.iter().map(Pipe::forward).collect(), own };
            self.node(subject, calls, targets)
        } else {
            self.node(subject, calls, FanOut(targets.to_vec()))
        };
        Ok(Pipe::new(node))
    }

    /// Returns the depth of the deepest target if all may be called directly. Targets of other
    /// circuits are never called directly and do not count.
    fn calls<E: Send + 'static>(&self, targets: &[Pipe<E>]) -> Option<Depth> {
        let own = targets.iter().filter(|target| target.is_of(self.machine()));
        own.map(|target| target.node().depth()).max()?.called_by(size_of::<E>())
    }
}

/// Pipes that run in order. A pipe catches its receptor's panic.
struct Targets<E> {
    all: Box<[Forward<E>]>,
    /// Whether all of them belong to the circuit that runs this.
    own: bool,
}

impl<E: Clone + Send + 'static> Receptor<E> for Targets<E> {
    fn receive(&mut self, value: E) {
        let Some((last, others)) = self.all.split_last_mut() else { return };
        if self.own {
            for target in others {
                // SAFETY: receptors run in the context of their circuit, which is also the
                // target's.
                unsafe { target.run(value.clone()) };
            }
            // SAFETY: as above.
            unsafe { last.run(value) };
        } else {
            others.iter_mut().for_each(|target| target.receive(value.clone()));
            last.receive(value);
        }
    }
}

impl<E: Clone, R: Receptor<E>, const N: usize> Receptor<E> for FanOut<[R; N]> {
    #[inline]
    fn receive(&mut self, value: E) {
        give_all(&mut self.0, value);
    }
}

impl<E: Clone, R: Receptor<E>> Receptor<E> for FanOut<Vec<R>> {
    #[inline]
    fn receive(&mut self, value: E) {
        give_all(&mut self.0, value);
    }
}

impl<E: Clone, R: Receptor<E>> Receptor<E> for FanOut<Box<[R]>> {
    #[inline]
    fn receive(&mut self, value: E) {
        give_all(&mut self.0, value);
    }
}

impl<E: Clone, A: Receptor<E>, B: Receptor<E>> Receptor<E> for FanOut<(A, B)> {
    #[inline]
    fn receive(&mut self, value: E) {
        let mut failed = Failed(None);
        failed.give(&mut self.0.0, value.clone());
        failed.give(&mut self.0.1, value);
        failed.go_on();
    }
}

#[inline]
fn give_all<E: Clone, R: Receptor<E>>(receptors: &mut [R], value: E) {
    let mut failed = Failed(None);
    if let Some((last, others)) = receptors.split_last_mut() {
        for receptor in others {
            failed.give(receptor, value.clone());
        }
        failed.give(last, value);
    }
    failed.go_on();
}

struct Failed(Option<Box<dyn Any + Send>>);

impl Failed {
    #[inline]
    fn give<E>(&mut self, receptor: &mut impl Receptor<E>, value: E) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| receptor.receive(value))) {
            self.0.get_or_insert(panic);
        }
    }

    #[inline]
    fn go_on(self) {
        if let Some(panic) = self.0 {
            resume_unwind(panic);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn every_receptor_is_given_the_value_though_one_fails() {
        let seen = std::sync::Mutex::new(Vec::new());
        let note = |factor: i32| {
            let seen = &seen;
            move |value: i32| {
                assert!(factor != 2, "two is not liked");
                seen.lock().unwrap().push(factor * value);
            }
        };
        let mut all = FanOut((FanOut([note(1), note(2)]), FanOut(vec![note(2), note(3)])));
        let panic = catch_unwind(AssertUnwindSafe(|| all.receive(5))).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"two is not liked"));
        assert_eq!(*seen.lock().unwrap(), [5, 15]);
    }

    #[test]
    fn a_fan_out_to_no_target_drops_the_value() {
        let value = Arc::new(1);
        FanOut::<[fn(Arc<i32>); 0]>([]).receive(Arc::clone(&value));
        assert_eq!(Arc::strong_count(&value), 1);
    }

    #[test]
    fn thousands_of_pipes_in_a_row_need_little_stack() {
        let circuit = Circuit::new();
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut pipe = circuit.pipe(move |value: u64| sender.send(value).unwrap()).unwrap();
        for _ in 0..20_000 {
            pipe = circuit.unnamed().fan_out(&[circuit.unnamed().forward(&pipe).unwrap()]).unwrap();
        }
        pipe.emit(7);
        circuit.settle().unwrap();
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [7]);
    }
}
