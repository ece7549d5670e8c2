//! How a node's failures are handled, where that differs from its circuit's way.
//!
//! Most nodes need none of it, so a node has one pointer for all of it, independent of the types.
#![allow(unsafe_code, reason = "the makers of nodes know the types that the nodes' pointers have lost")]

use std::cell::UnsafeCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Fault;
use crate::failure::failure_report::Trouble;
use crate::failure::supervision::{Restarts, Supervision};
use crate::failure::thrown::shielded;
use crate::subscription::receptor::Receptor;

/// Makes a receptor with fresh state. The argument is the number of restarts so far.
pub(crate) type Make<R> = Box<dyn FnMut(u32) -> Result<R, Fault> + Send>;

/// How failures of a receptor `R` of values `E` are handled; set when its node is made.
pub(crate) struct Care<E, R> {
    /// None to use the circuit's.
    pub(crate) supervision: Option<Supervision>,
    /// None if the receptor cannot be restarted.
    pub(crate) make: Option<Make<R>>,
    /// Receives the values that arrive in quarantine.
    pub(crate) dead_letters: Option<Box<dyn Receptor<E>>>,
}

impl<E, R> Default for Care<E, R> {
    fn default() -> Self {
        Self { supervision: None, make: None, dead_letters: None }
    }
}

/// A [`Care`] without its types.
pub(crate) struct Kept {
    /// Never changes, so it can be read on any thread.
    supervision: Option<Supervision>,
    /// Accessed in the circuit's context only.
    measures: UnsafeCell<Measures>,
}

#[derive(Default)]
struct Measures {
    /// Makes a fresh receptor at the address.
    renew: Option<Renew>,
    /// Moves the value out of the address, and passes it on.
    lose: Option<Lose>,
    restarts: Restarts,
    /// Number of restarts.
    restarted: u32,
}

type Renew = Box<dyn FnMut(*mut u8, u32) -> Result<(), Fault> + Send>;
type Lose = Box<dyn FnMut(*mut u8) + Send>;

impl<E: Send + 'static, R: 'static> Care<E, R> {
    /// Removes the types. None if nothing was set.
    pub(crate) fn keep(self) -> Option<Box<Kept>> {
        let Self { supervision, make, dead_letters } = self;
        let renew = make.map(|mut make| -> Renew {
            Box::new(move |place, restarted| {
                let fresh = make(restarted)?;
                // SAFETY: `Kept::renew` is called with the address of an `R`.
                unsafe { place.cast::<R>().write(fresh) };
                Ok(())
            })
        });
        let lose = dead_letters.map(|mut letters| -> Lose {
            // SAFETY: `Kept::lose` is called with the address of an `E`.
            Box::new(move |place| letters.receive(unsafe { place.cast::<E>().read_unaligned() }))
        });
        if supervision.is_none() && renew.is_none() && lose.is_none() {
            return None;
        }
        let measures = Measures { renew, lose, ..Measures::default() };
        Some(Box::new(Kept { supervision, measures: UnsafeCell::new(measures) }))
    }
}

impl Kept {
    pub(crate) fn supervision(&self) -> Option<Supervision> {
        self.supervision
    }

    /// The recent restarts, if the receptor can be restarted.
    ///
    /// # Safety
    ///
    /// In the circuit's context, which uses nothing else of this before the borrow ends.
    #[allow(clippy::mut_from_ref, reason = "the context has it alone")]
    pub(crate) unsafe fn restarts(&self) -> Option<&mut Restarts> {
        // SAFETY: as the caller says.
        let measures = unsafe { &mut *self.measures.get() };
        measures.renew.is_some().then_some(&mut measures.restarts)
    }

    /// Makes a fresh receptor at the address. After a failure, all later calls fail.
    ///
    /// # Safety
    ///
    /// In the circuit's context. `place` is the address for a receptor of the type that this care
    /// was made for, and holds none.
    pub(crate) unsafe fn renew(&self, place: *mut u8) -> Result<(), Trouble> {
        let measures = self.measures.get();
        // SAFETY: in the context; no borrow is held while user code runs.
        let (renew, restarted) = unsafe {
            (*measures).restarted = (*measures).restarted.saturating_add(1);
            ((*measures).renew.take(), (*measures).restarted)
        };
        let Some(mut renew) = renew else {
            return Err(Trouble::Refusal("no factory makes it again".to_owned()));
        };
        let trouble = match catch_unwind(AssertUnwindSafe(|| renew(place, restarted))) {
            Ok(Ok(())) => {
                // SAFETY: as above.
                unsafe { (*measures).renew = Some(renew) };
                return Ok(());
            }
            Ok(Err(fault)) => Trouble::Refusal(fault.to_string()),
            Err(panic) => Trouble::Panic(panic),
        };
        shielded(|| drop(renew));
        Err(trouble)
    }

    /// Passes the value at the address to the dead letters. Returns false if there are none; then
    /// the value is still there.
    ///
    /// # Safety
    ///
    /// In the circuit's context. The value is of the type that this care was made for.
    pub(crate) unsafe fn lose(&self, value: *mut u8) -> bool {
        let measures = self.measures.get();
        // SAFETY: as in `renew`.
        let Some(mut lose) = (unsafe { (*measures).lose.take() }) else { return false };
        shielded(|| lose(value));
        // SAFETY: as above.
        unsafe { (*measures).lose = Some(lose) };
        true
    }

    /// Drops the function that makes receptors.
    ///
    /// # Safety
    ///
    /// In the circuit's context, or without any other thread.
    pub(crate) unsafe fn stop_renewing(&self) {
        // SAFETY: as in `renew`.
        let renew = unsafe { (*self.measures.get()).renew.take() };
        shielded(|| drop(renew));
    }

    /// Drops everything that must be dropped in the context.
    ///
    /// # Safety
    ///
    /// In the circuit's context, or without any other thread.
    pub(crate) unsafe fn let_go(&self) {
        // SAFETY: as in `renew`.
        let measures = unsafe { mem::take(&mut *self.measures.get()) };
        shielded(|| drop(measures));
    }
}
