//! Receptors that subscribers have registered, and the handling of their failures.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::execution::machine::Machine;
use crate::failure::failure_report::{Failure, Trouble};
use crate::failure::supervision::{Remedy, Restarts, Supervision};
use crate::failure::thrown::shielded;
use crate::identity::subject::Subject;
use crate::subscription::receptor::Receptor;

/// A receptor with an account of its failures.
pub(crate) trait Registered<E>: Receptor<E> {
    fn account(&mut self) -> &mut Account;

    /// Drops the receptor and returns a replacement made afterwards.
    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble>;
}

/// The failures of one registered receptor.
#[derive(Default)]
pub(crate) struct Account {
    failures: u32,
    /// Overrides the supervision of the circuit.
    supervision: Option<Supervision>,
    /// The times of its restarts, if it can be restarted.
    restarts: Option<Restarts>,
}

/// Applies the supervision to a panic of a pipe's registered receptor, and reports the panic. In
/// the circuit's context.
#[cold]
pub(crate) fn failed<E: 'static>(
    receptor: &mut Box<dyn Registered<E>>,
    pipe: &Subject,
    panic: Box<dyn Any + Send>,
) {
    Machine::with_inside(|machine| {
        let machine = machine.expect("in a circuit's context");
        let failure = Failure::of_panic(pipe.clone(), "receive", panic);
        let account = receptor.account();
        account.failures = account.failures.saturating_add(1);
        let count = account.failures;
        let mut remedy = machine.remedy(account.supervision, count, account.restarts.as_mut());
        let mut trouble = None;
        match remedy {
            Remedy::Resumed => {}
            Remedy::Quarantined => {
                let before = std::mem::replace(receptor, Box::new(Discarding::default()));
                shielded(|| drop(before));
            }
            Remedy::Restarted => match std::mem::replace(receptor, Box::new(Discarding::default())).renew() {
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

/// A receptor without a factory.
pub(crate) struct Plain<R> {
    receptor: R,
    account: Account,
}

impl<R> Plain<R> {
    pub(crate) fn new(receptor: R, supervision: Option<Supervision>) -> Self {
        Self { receptor, account: Account { supervision, ..Account::default() } }
    }
}

impl<E, R: Receptor<E>> Receptor<E> for Plain<R> {
    #[inline]
    fn receive(&mut self, value: E) {
        self.receptor.receive(value);
    }
}

impl<E, R: Receptor<E> + 'static> Registered<E> for Plain<R> {
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble> {
        Ok(self)
    }
}

/// A receptor and its factory.
pub(crate) struct Made<R, F> {
    receptor: R,
    make: F,
    account: Account,
}

impl<R, F> Made<R, F> {
    pub(crate) fn new(receptor: R, make: F, supervision: Option<Supervision>) -> Self {
        let restarts = Some(Restarts::default());
        Self { receptor, make, account: Account { supervision, restarts, ..Account::default() } }
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
    fn account(&mut self) -> &mut Account {
        &mut self.account
    }

    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble> {
        let Self { receptor, mut make, account } = *self;
        shielded(|| drop(receptor));
        match catch_unwind(AssertUnwindSafe(&mut make)) {
            Ok(receptor) => Ok(Box::new(Self { receptor, make, account })),
            Err(panic) => {
                shielded(|| drop(make));
                Err(Trouble::Panic(panic))
            }
        }
    }
}

/// Replaces a quarantined receptor: drops all values.
#[derive(Default)]
struct Discarding(Account);

impl<E> Receptor<E> for Discarding {
    fn receive(&mut self, value: E) {
        shielded(|| drop(value));
    }
}

impl<E> Registered<E> for Discarding {
    fn account(&mut self) -> &mut Account {
        &mut self.0
    }

    fn renew(self: Box<Self>) -> Result<Box<dyn Registered<E>>, Trouble> {
        Ok(self)
    }
}
