//! Receptors that subscribers have registered, and what becomes of those that fail.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::failure::{Failure, Trouble, shielded};
use crate::machine::Machine;
use crate::receptor::Receptor;
use crate::subject::Subject;
use crate::supervision::{Remedy, Restarts, Supervision};

/// A receptor with what is known of its failures.
pub(crate) trait Registered<E>: Receptor<E> {
    /// Counts one more failure and returns how many there were.
    fn count_failure(&mut self) -> u32;

    /// What is done about its failures, if that is not what the circuit does.
    fn supervision(&self) -> Option<Supervision>;

    /// When it was made anew, if it can be.
    fn restarts(&mut self) -> Option<&mut Restarts>;

    /// The same with a fresh receptor, made after the old one was dropped.
    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble>;
}

/// Does about the panic of a pipe's registered receptor what its supervision says, and reports it. In the circuit's
/// context.
#[cold]
pub(crate) fn failed<E: 'static>(
    receptor: &mut Box<dyn Registered<E>>,
    pipe: &Subject,
    panic: Box<dyn Any + Send>,
) {
    Machine::with_inside(|machine| {
        let machine = machine.expect("in a circuit's context");
        let failure = Failure::of_panic(pipe.clone(), "receive", panic);
        let count = receptor.count_failure();
        let mut remedy = machine.remedy(receptor.supervision(), count, receptor.restarts());
        let mut trouble = None;
        match remedy {
            Remedy::Resumed => {}
            Remedy::Quarantined => {
                let before = std::mem::replace(receptor, Box::new(Nobody));
                shielded(|| drop(before));
            }
            Remedy::Restarted => match std::mem::replace(receptor, Box::new(Nobody)).renew() {
                Ok(fresh) => *receptor = fresh,
                Err(why) => {
                    remedy = Remedy::Quarantined;
                    trouble = Some(why);
                }
            },
        }
        machine.report_remedied(failure.was(count, remedy), trouble);
    });
}

/// A receptor as it was registered.
pub(crate) struct Plain<R> {
    receptor: R,
    supervision: Option<Supervision>,
    failures: u32,
}

impl<R> Plain<R> {
    pub(crate) fn new(receptor: R, supervision: Option<Supervision>) -> Self {
        Self { receptor, supervision, failures: 0 }
    }
}

impl<E, R: Receptor<E>> Receptor<E> for Plain<R> {
    #[inline]
    fn receive(&mut self, value: E) {
        self.receptor.receive(value);
    }
}

impl<E, R: Receptor<E> + 'static> Registered<E> for Plain<R> {
    fn count_failure(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.failures
    }

    fn supervision(&self) -> Option<Supervision> {
        self.supervision
    }

    fn restarts(&mut self) -> Option<&mut Restarts> {
        None
    }

    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble> {
        Ok(self)
    }
}

/// A receptor and what made it.
pub(crate) struct Made<R, F> {
    receptor: R,
    make: F,
    supervision: Option<Supervision>,
    failures: u32,
    restarts: Restarts,
}

impl<R, F> Made<R, F> {
    pub(crate) fn new(receptor: R, make: F, supervision: Option<Supervision>) -> Self {
        Self { receptor, make, supervision, failures: 0, restarts: Restarts::default() }
    }
}

impl<E, R: Receptor<E>, F: Send> Receptor<E> for Made<R, F> {
    #[inline]
    fn receive(&mut self, value: E) {
        self.receptor.receive(value);
    }
}

impl<E, R, F> Registered<E> for Made<R, F>
where
    R: Receptor<E> + 'static,
    F: FnMut() -> R + Send + 'static,
{
    fn count_failure(&mut self) -> u32 {
        self.failures = self.failures.saturating_add(1);
        self.failures
    }

    fn supervision(&self) -> Option<Supervision> {
        self.supervision
    }

    fn restarts(&mut self) -> Option<&mut Restarts> {
        Some(&mut self.restarts)
    }

    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble> {
        let Self { receptor, mut make, supervision, failures, restarts } = *self;
        shielded(|| drop(receptor));
        match catch_unwind(AssertUnwindSafe(&mut make)) {
            Ok(receptor) => Ok(Box::new(Self { receptor, make, supervision, failures, restarts })),
            Err(panic) => {
                shielded(|| drop(make));
                Err(Trouble::Panic(panic))
            }
        }
    }
}

/// Who is left in quarantine.
struct Nobody;

impl<E> Receptor<E> for Nobody {
    fn receive(&mut self, value: E) {
        shielded(|| drop(value));
    }
}

impl<E> Registered<E> for Nobody {
    fn count_failure(&mut self) -> u32 {
        1
    }

    fn supervision(&self) -> Option<Supervision> {
        None
    }

    fn restarts(&mut self) -> Option<&mut Restarts> {
        None
    }

    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble> {
        Ok(self)
    }
}
