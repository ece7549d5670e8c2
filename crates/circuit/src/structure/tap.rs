//! Taps: a conduit of what is made of another conduit's emissions.

use std::fmt;
use std::hash::{Hash, Hasher};

use crate::error::{ContextError, Fault};
use crate::execution::event::Hearer;
use crate::operator::recipe::Recipe;
use crate::structure::conduit::Conduit;
use crate::subscription::membership::Subscription;
use crate::subscription::subscriber::Subscriber;

/// A conduit that has, for each pipe of a source, a pipe of the same name with what a recipe makes of the emissions there.
///
/// It is an ordinary conduit: it can be subscribed to, tapped again, and emitted to. Ends with [`Tap::close`] and with its
/// source; dropping it changes nothing.
///
/// An emission of the source costs what its operators cost, and one hop through the transit queue.
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
    /// A tap with these operators, which have their own state for each name. See [`Tap`].
    pub fn tap<R>(&self, recipe: &R) -> Result<Tap<E, R::Out>, Fault>
    where
        R: Recipe<In = E>,
        R::Out: Clone,
    {
        let (subscriber, mirror) = self.tap_parts(recipe)?;
        let hearer = Hearer::Tap { mirror: mirror.subject().id() };
        Ok(Tap { subscription: self.begin(&subscriber, None, hearer)?, mirror })
    }

    /// A tap that has yet to begin, see [`Tap::begin`].
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
    /// Begins what this conduit has prepared, though it may be closed by the time.
    pub(crate) fn begin(&self, source: &Conduit<E>) {
        source.begin_prepared(&self.subscription, Hearer::Tap { mirror: self.mirror.subject().id() });
    }

    pub(crate) fn subscription(&self) -> &Subscription<E> {
        &self.subscription
    }

    /// The conduit of what the operators make.
    pub fn conduit(&self) -> &Conduit<O> {
        &self.mirror
    }

    /// Ends it: what the source emits from here on does not come, and the conduit is closed.
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

/// Whether two handles are of one tap.
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
