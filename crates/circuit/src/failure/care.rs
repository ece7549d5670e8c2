//! How a node's failures are taken care of, where that is more than what its circuit does about everybody's.
//!
//! Most nodes have none of it, so a node has one pointer to all of it, whatever the types are.
#![allow(unsafe_code, reason = "the makers of nodes know the types that the nodes' pointers have lost")]

use std::cell::UnsafeCell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Fault;
use crate::failure::failure_report::Trouble;
use crate::failure::supervision::{Restarts, Supervision};
use crate::failure::thrown::shielded;
use crate::subscription::receptor::Receptor;

/// Makes a receptor with fresh state. It is told how many times the one before it was made anew.
pub(crate) type Make<R> = Box<dyn FnMut(u32) -> Result<R, Fault> + Send>;

/// What is said about a node to a receptor `R` of values `E` when it is made.
pub(crate) struct Care<E, R> {
    /// None if the circuit's holds for it.
    pub(crate) supervision: Option<Supervision>,
    /// None if it cannot be made anew.
    pub(crate) make: Option<Make<R>>,
    /// Who is given what comes in quarantine.
    pub(crate) dead_letters: Option<Box<dyn Receptor<E>>>,
}

impl<E, R> Default for Care<E, R> {
    fn default() -> Self {
        Self { supervision: None, make: None, dead_letters: None }
    }
}

/// A [`Care`] without its types.
pub(crate) struct Kept {
    /// Never changes, so that it can be read from anywhere.
    supervision: Option<Supervision>,
    /// Reached in the circuit's context only.
    measures: UnsafeCell<Measures>,
}

#[derive(Default)]
struct Measures {
    /// Makes a fresh receptor at the place.
    renew: Option<Renew>,
    /// Moves the value out of the place, and gives it away.
    lose: Option<Lose>,
    restarts: Restarts,
    /// How many times it was made anew.
    restarted: u32,
}

type Renew = Box<dyn FnMut(*mut u8, u32) -> Result<(), Fault> + Send>;
type Lose = Box<dyn FnMut(*mut u8) + Send>;

impl<E: Send + 'static, R: 'static> Care<E, R> {
    /// None if nothing was said.
    pub(crate) fn keep(self) -> Option<Box<Kept>> {
        let Self { supervision, make, dead_letters } = self;
        let renew = make.map(|mut make| -> Renew {
            Box::new(move |place, restarted| {
                let fresh = make(restarted)?;
                // SAFETY: `Kept::renew` is given the place of an `R`.
                unsafe { place.cast::<R>().write(fresh) };
                Ok(())
            })
        });
        let lose = dead_letters.map(|mut letters| -> Lose {
            // SAFETY: `Kept::lose` is given the place of an `E`.
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

    /// When it was made anew, if it can be.
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

    /// Makes a fresh receptor at the place. If that fails, it never works again.
    ///
    /// # Safety
    ///
    /// In the circuit's context. The place is that of a receptor of the type that the care was kept of, and has none.
    pub(crate) unsafe fn renew(&self, place: *mut u8) -> Result<(), Trouble> {
        let measures = self.measures.get();
        // SAFETY: in the context; no borrow is held while code of users runs.
        let (renew, restarted) = unsafe {
            (*measures).restarted = (*measures).restarted.saturating_add(1);
            ((*measures).renew.take(), (*measures).restarted)
        };
        let Some(mut renew) = renew else {
            return Err(Trouble::Refusal("nobody knows how to make it anew".to_owned()));
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

    /// Gives the value at the place to whom lost values are given; false if there is nobody, and then the value is still there.
    ///
    /// # Safety
    ///
    /// In the circuit's context. The value is of the type that the care was kept of.
    pub(crate) unsafe fn lose(&self, value: *mut u8) -> bool {
        let measures = self.measures.get();
        // SAFETY: as in `renew`.
        let Some(mut lose) = (unsafe { (*measures).lose.take() }) else { return false };
        shielded(|| lose(value));
        // SAFETY: as above.
        unsafe { (*measures).lose = Some(lose) };
        true
    }

    /// Drops what makes receptors: there will be none any more.
    ///
    /// # Safety
    ///
    /// In the circuit's context, or alone.
    pub(crate) unsafe fn stop_renewing(&self) {
        // SAFETY: as in `renew`.
        let renew = unsafe { (*self.measures.get()).renew.take() };
        shielded(|| drop(renew));
    }

    /// Drops all that may be dropped in the context only.
    ///
    /// # Safety
    ///
    /// In the circuit's context, or alone.
    pub(crate) unsafe fn let_go(&self) {
        // SAFETY: as in `renew`.
        let measures = unsafe { mem::take(&mut *self.measures.get()) };
        shielded(|| drop(measures));
    }
}
