//! Pools: one value per name, made on first use.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use crate::error::Fault;
use crate::execution::making::Making;
use crate::failure::failure_report::Failure;
use crate::identity::name::Name;
use crate::identity::name_map::NameMap;
use crate::identity::subject::Subject;
use crate::operator::recipe::Recipe;
use crate::structure::conduit::Conduit;
use crate::structure::handle::handle;
use crate::structure::pipe::Pipe;
use crate::subscription::registrar::{ReceiverPool, Registrar};

/// One value per name, made by a factory on the first request for that name. The factory is called
/// at most once per name. Its outcome is kept, also if that is a fault or a panic.
///
/// Pools come from [`Conduit::pool`], [`Conduit::derive`], [`Pool::derive`], [`crate::Sink::pool`]
/// and [`crate::Cortex::pool`]. A pool cannot be closed, and dropping it closes nothing that it
/// made. Clones are handles of the same pool.
///
/// A factory may request other names of its pool. Factories that wait for each other in a cycle on
/// several threads deadlock.
///
/// ```
/// use tidemark_circuit::{Circuit, Pipe, name};
///
/// struct Counter(Pipe<i64>);
/// impl Counter {
///     fn increment(&self) {
///         self.0.emit(1);
///     }
/// }
///
/// let circuit = Circuit::new();
/// let counters = circuit.conduit::<i64>()?.derive(|pipe| Counter(pipe.clone()));
/// counters.get(name!("requests")).unwrap().increment();
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Pool<T> {
    inner: Arc<PoolInner<T>>,
}

type Factory<T> = dyn Fn(Name) -> Result<T, Fault> + Send + Sync;

struct PoolInner<T> {
    /// Subject of the faults of a factory that panics.
    subject: Subject,
    made: NameMap<Result<T, Fault>>,
    factory: Box<Factory<T>>,
}

impl<T: Send + Sync + 'static> Pool<T> {
    pub(crate) fn new(
        subject: Subject,
        factory: impl Fn(Name) -> Result<T, Fault> + Send + Sync + 'static,
    ) -> Self {
        let inner = PoolInner { subject, made: NameMap::default(), factory: Box::new(factory) };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the value of the name, creating it on the first call. Later calls return the same
    /// value and take no lock.
    ///
    /// The fault is the one that the factory returned, or has the message of its panic.
    ///
    /// # Panics
    ///
    /// If a factory requests the name that it is making from its own pool.
    #[inline]
    pub fn get(&self, name: impl Into<Name>) -> Result<&T, &Fault> {
        let name = name.into();
        self.inner.made.get(name).unwrap_or_else(|| self.get_first(name)).as_ref()
    }

    #[cold]
    fn get_first(&self, name: Name) -> &Result<T, Fault> {
        let pool = Arc::as_ptr(&self.inner).addr();
        assert!(!Making::is_begun(pool, name), "the factory asks its pool for {name}, which it is making");
        self.inner.made.get_or_make(name, || {
            let _making = Making::begin(pool, name);
            self.make(name)
        })
    }

    /// Returns a pool of what `derive` makes of each value of this pool. A fault here is the same
    /// fault there.
    pub fn derive<U, F>(&self, derive: F) -> Pool<U>
    where
        U: Send + Sync + 'static,
        F: Fn(&T) -> U + Send + Sync + 'static,
    {
        self.try_derive(move |source| Ok(derive(source)))
    }

    /// Derives a pool as [`Pool::derive`] does, with a factory that may refuse.
    pub fn try_derive<U, F>(&self, derive: F) -> Pool<U>
    where
        U: Send + Sync + 'static,
        F: Fn(&T) -> Result<U, Fault> + Send + Sync + 'static,
    {
        let source = self.clone();
        Pool::new(self.inner.subject.clone(), move |name| derive(source.get(name).map_err(Clone::clone)?))
    }

    fn make(&self, name: Name) -> Result<T, Fault> {
        let inner = &*self.inner;
        catch_unwind(AssertUnwindSafe(|| (inner.factory)(name))).unwrap_or_else(|panic| {
            let failure = Failure::of_panic(inner.subject.clone(), "pool", panic);
            let message = format!("the factory panicked for {name}: {}", failure.message());
            Err(Fault::new(inner.subject.clone(), "pool", message))
        })
    }
}

impl<E: Send + 'static> Pool<Pipe<E>> {
    /// Returns a pool of pipes whose values pass the recipe's operators on their way to this pool's
    /// pipe of the same name. The operators have their own state for each name.
    pub fn pool<R>(&self, recipe: &R) -> Pool<Pipe<R::In>>
    where
        R: Recipe<Out = E>,
    {
        let recipe = recipe.clone();
        self.try_derive(move |pipe| pipe.prepend(&recipe))
    }
}

impl<E: Clone + Send + 'static> Conduit<E> {
    /// Returns a pool of pipes whose values pass the recipe's operators on their way to the
    /// conduit's pipe of the same name. The operators have their own state for each name.
    ///
    /// ```
    /// use tidemark_circuit::{Circuit, Flow, name};
    ///
    /// let circuit = Circuit::new();
    /// let lengths = circuit.conduit::<usize>()?;
    /// let texts = lengths.pool(&Flow::new().map(|text: &str| text.len()));
    /// texts.get(name!("title")).unwrap().emit("four");
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn pool<R>(&self, recipe: &R) -> Pool<Pipe<R::In>>
    where
        R: Recipe<Out = E>,
    {
        let recipe = recipe.clone();
        self.try_derive(move |pipe| pipe.prepend(&recipe))
    }

    /// Returns a pool of what `derive` makes of each of the conduit's pipes. See [`Pool`].
    pub fn derive<T, F>(&self, derive: F) -> Pool<T>
    where
        T: Send + Sync + 'static,
        F: Fn(&Pipe<E>) -> T + Send + Sync + 'static,
    {
        self.try_derive(move |pipe| Ok(derive(pipe)))
    }

    /// Derives a pool as [`Conduit::derive`] does, with a factory that may refuse.
    pub fn try_derive<T, F>(&self, derive: F) -> Pool<T>
    where
        T: Send + Sync + 'static,
        F: Fn(&Pipe<E>) -> Result<T, Fault> + Send + Sync + 'static,
    {
        let conduit = self.clone();
        Pool::new(self.subject().clone(), move |name| derive(conduit.get(name)))
    }
}

/// Mirrors: a subscriber to a pool forwards each pipe's emissions to the pool's pipe of the same
/// name. A fault of the pool is reported to the circuit, once per pipe.
impl<E: Clone + Send + 'static> ReceiverPool<E> for Pool<Pipe<E>> {
    fn register(&mut self, subject: &Subject, registrar: &mut Registrar<'_, E>) {
        match self.get(subject.name()) {
            Ok(pipe) => registrar.pipe(pipe),
            // Reported as a failure of the subscriber's callback, which is the caller.
            Err(fault) => resume_unwind(Box::new(fault.to_string())),
        }
    }
}

handle!(Pool<T>, |pool| &pool.inner.subject);
