//! The cortex: the root that encloses everything and from which everything can be made.

use crate::circuit::Circuit;
use crate::error::{ArgumentError, Fault};
use crate::execution::current::Current;
use crate::identity::name::Name;
use crate::identity::subject::Subject;
use crate::identity::value::State;
use crate::structure::pool::Pool;
use crate::structure::scope::Scope;

/// Enclosure of all circuits, scopes and threads of the process. There is one; [`cortex`] returns
/// it.
///
/// Its methods make the same as the types' own constructors; pools are made only here.
///
/// ```
/// use tidemark_circuit::{Kind, cortex, name};
///
/// let circuit = cortex().circuit_named(name!("orders"));
/// assert_eq!(cortex().subject().kind(), Kind::Cortex);
/// assert_eq!(circuit.subject().enclosure(), Some(cortex().subject()));
/// ```
#[derive(Debug)]
pub struct Cortex(());

/// Returns the cortex. Costs nothing.
///
/// ```
/// let circuit = tidemark_circuit::cortex().circuit();
/// # drop(circuit);
/// ```
pub fn cortex() -> &'static Cortex {
    static CORTEX: Cortex = Cortex(());
    &CORTEX
}

impl Cortex {
    /// Identity of the cortex.
    pub fn subject(&self) -> &'static Subject {
        Subject::cortex()
    }

    /// See [`Circuit::new`].
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread; [`Circuit::builder`] returns this as an error.
    pub fn circuit(&self) -> Circuit {
        Circuit::new()
    }

    /// As [`Cortex::circuit`], with a name.
    ///
    /// # Panics
    ///
    /// If the system cannot start a thread.
    pub fn circuit_named(&self, name: Name) -> Circuit {
        Circuit::builder().name(name).build().expect("a thread for the shared pool of circuits")
    }

    /// See [`Scope::new`].
    pub fn scope(&self) -> Scope {
        Scope::new()
    }

    /// See [`Scope::named`].
    pub fn scope_named(&self, name: Name) -> Scope {
        Scope::named(name)
    }

    /// See [`Current::here`].
    pub fn current(&self) -> Current {
        Current::here()
    }

    /// See [`Name::new`].
    pub fn name(&self, path: &str) -> Result<Name, ArgumentError> {
        Name::new(path)
    }

    /// See [`State::empty`].
    pub fn state(&self) -> State {
        State::empty()
    }

    /// Makes a pool of the values that the factory makes, one for each name. See [`Pool`].
    ///
    /// ```
    /// use tidemark_circuit::{cortex, name};
    ///
    /// let circuit = cortex().circuit();
    /// let levels = cortex().try_pool(move |name| circuit.named(name).cell(0));
    /// assert_eq!(levels.get(name!("north")).unwrap().get(), 0);
    /// ```
    pub fn pool<T, F>(&self, factory: F) -> Pool<T>
    where
        T: Send + Sync + 'static,
        F: Fn(Name) -> T + Send + Sync + 'static,
    {
        self.try_pool(move |name| Ok(factory(name)))
    }

    /// As [`Cortex::pool`], with a factory that may fail.
    pub fn try_pool<T, F>(&self, factory: F) -> Pool<T>
    where
        T: Send + Sync + 'static,
        F: Fn(Name) -> Result<T, Fault> + Send + Sync + 'static,
    {
        Pool::new(self.subject().clone(), factory)
    }
}
