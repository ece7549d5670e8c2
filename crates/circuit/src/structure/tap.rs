//! Taps: conduits derived from another conduit's emissions.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::error::{ContextError, Fault};
use crate::execution::event::Hearer;
use crate::operator::recipe::Recipe;
use crate::structure::conduit::Conduit;
use crate::subscription::membership::Subscription;
use crate::subscription::subscriber::Subscriber;

/// A conduit derived from a source: for each pipe of the source it has a pipe of the same name,
/// which emits what a recipe makes of the source's emissions.
///
/// It is an ordinary conduit, which can be subscribed to, tapped and emitted to. It ends with
/// [`Tap::close`] or with its source. Dropping the handle does not end it.
///
/// An emission of the source costs its operators and one pass through the transit queue.
///
/// ```
/// use tidemark_circuit::{Circuit, Flow, name};
///
/// let circuit = Circuit::new();
/// let amounts = circuit.conduit::<u64>()?;
/// let large = amounts.tap(&Flow::new().filter_map(|amount| (amount >= 1000).then_some("large")))?;
/// let reservoir = large.conduit().reservoir(16)?;
/// for amount in [5, 2000] {
///     amounts.get(name!("orders")).emit(amount);
/// }
/// circuit.settle()?;
/// assert_eq!(reservoir.drain().len(), 1);
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub struct Tap<E, O> {
    subscription: Subscription<E>,
    mirror: Conduit<O>,
}

impl<E: Clone + Send + 'static> Conduit<E> {
    /// Creates a tap with these operators, which have their own state for each name. See [`Tap`].
    pub fn tap<R>(&self, recipe: &R) -> Result<Tap<E, R::Out>, Fault>
    where
        R: Recipe<In = E>,
        R::Out: Clone,
    {
        let (subscriber, mirror) = self.tap_parts(recipe)?;
        let hearer = Hearer::Tap { mirror: mirror.subject().id() };
        Ok(Tap { subscription: self.begin(&subscriber, None, hearer)?, mirror })
    }

    /// Creates a tap that has not begun, see [`Tap::begin`].
    pub(crate) fn prepare_tap<R>(&self, recipe: &R) -> Result<Tap<E, R::Out>, Fault>
    where
        R: Recipe<In = E>,
        R::Out: Clone,
    {
        let (subscriber, mirror) = self.tap_parts(recipe)?;
        Ok(Tap { subscription: self.prepare(&subscriber, None), mirror })
    }

    fn tap_parts<R>(&self, recipe: &R) -> Result<(Subscriber<E>, Conduit<R::Out>), Fault>
    where
        R: Recipe<In = E>,
        R::Out: Clone,
    {
        let circuit = self.circuit();
        let naming = circuit.named(self.subject().name());
        let mirror = naming.conduit::<R::Out>()?;
        Ok((naming.subscriber_to(mirror.pool(recipe))?, mirror))
    }
}

impl<E: Clone + Send + 'static, O: Clone + Send + 'static> Tap<E, O> {
    /// Begins a tap made by [`Conduit::prepare_tap`] of this conduit. It ends immediately if the
    /// conduit is closed by then.
    pub(crate) fn begin(&self, source: &Conduit<E>) {
        source.begin_prepared(&self.subscription, Hearer::Tap { mirror: self.mirror.subject().id() });
    }

    pub(crate) fn subscription(&self) -> &Subscription<E> {
        &self.subscription
    }

    /// Returns the conduit of the operators' output.
    pub fn conduit(&self) -> &Conduit<O> {
        &self.mirror
    }

    /// Ends the tap: later emissions of the source do not reach it, and its conduit is closed.
    pub fn close(&self) {
        self.subscription.close();
        self.mirror.close();
    }

    /// Closes the tap and waits until everything emitted before is handled.
    pub fn close_and_settle(&self) -> Result<(), ContextError> {
        self.mirror.machine().check_can_close_and_wait()?;
        self.subscription.close();
        self.mirror.close_and_settle()
    }
}

impl<E, O> Clone for Tap<E, O> {
    fn clone(&self) -> Self {
        Self { subscription: self.subscription.clone(), mirror: self.mirror.clone() }
    }
}

/// Returns whether both are handles of the same tap.
impl<E, O> PartialEq for Tap<E, O> {
    fn eq(&self, other: &Self) -> bool {
        self.mirror == other.mirror
    }
}

impl<E, O> Eq for Tap<E, O> {}

impl<E, O> Hash for Tap<E, O> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.mirror.hash(state);
    }
}

impl<E: Clone + Send + 'static, O: Clone + Send + 'static> fmt::Debug for Tap<E, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tap").field(self.mirror.subject()).finish()
    }
}
