//! Targets of replayed inputs, independent of their type.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

use super::recorded::Recorded;
use crate::execution::event::Hearer;
use crate::execution::machine::Machine;
use crate::identity::name::Name;
use crate::structure::bank::Bank;
use crate::structure::basin::Basin;
use crate::structure::conduit::Conduit;
use crate::structure::pipe::Pipe;
use crate::structure::port::Port;
use crate::structure::reservoir::Reservoir;
use crate::structure::tap::Tap;
use crate::subscription::membership::{OnClose, Subscription};
use crate::subscription::subscriber::Subscriber;

/// A component with a label. Operations that it does not have, or not with these arguments, return
/// none.
pub(super) trait Input: Send {
    /// Returns whether it belongs to the circuit.
    fn is_of(&self, machine: &Machine) -> bool;

    /// Emits a recorded value.
    fn emit(&self, _name: Option<Name>, _value: &[u8]) -> Option<()> {
        None
    }

    /// Sets a port to a recorded value.
    fn replace(&self, _value: &[u8]) -> Option<()> {
        None
    }

    /// Makes a port handle an update that panics with this message.
    fn fail(&self, _message: &str) -> Option<()> {
        None
    }

    /// Emits its content to this pipe.
    fn send(&self, _target: &dyn Any) -> Option<()> {
        None
    }

    /// The pipe that values for this component are emitted to, if it has one.
    fn target(&self, _name: Option<Name>) -> Option<Box<dyn Any>> {
        None
    }

    /// Begins a subscription, and returns the means to end it.
    fn subscribe(&self, _subscriber: &dyn Any, _on_close: Option<&dyn Any>) -> Option<Box<dyn Closing>> {
        None
    }

    /// Begins a reservoir for this many captures, passes it to the callback, and returns the means
    /// to end it. Without a callback it keeps nothing.
    fn reserve(&self, _capacity: usize, _given: Option<&dyn Any>) -> Option<Box<dyn Closing>> {
        None
    }

    fn close(&self) -> Option<()> {
        None
    }
}

/// A component that can only be closed, with the type of its values erased; `Any` gives it back for
/// subscribers.
pub(super) trait Closing: Any + Send {
    fn close(&self);

    /// Returns whether it belongs to the circuit.
    fn is_of(&self, machine: &Machine) -> bool;
}

/// Callback for the end of a subscription.
pub(super) struct OnEnd<E>(pub(super) Arc<Callback<E>>);

/// Callback that gets the reservoirs.
pub(super) struct OnReservoir<E: Clone + Send + 'static>(
    pub(super) RefCell<Box<dyn FnMut(Reservoir<E>) + Send>>,
);

type Callback<E> = dyn Fn(&Subscription<E>) + Send + Sync;

/// Decodes a value that takes all of the bytes.
fn read_whole<E: Recorded>(mut bytes: &[u8]) -> Option<E> {
    let value = E::read(&mut bytes)?;
    bytes.is_empty().then_some(value)
}

impl<E: Recorded + Send + 'static> Input for Pipe<E> {
    fn is_of(&self, machine: &Machine) -> bool {
        Pipe::is_of(self, machine)
    }

    fn emit(&self, _: Option<Name>, value: &[u8]) -> Option<()> {
        Pipe::emit(self, read_whole(value)?);
        Some(())
    }

    fn target(&self, _: Option<Name>) -> Option<Box<dyn Any>> {
        Some(Box::new(self.clone()))
    }
}

impl<E: Recorded + Clone + Send + 'static> Input for Conduit<E> {
    fn is_of(&self, machine: &Machine) -> bool {
        std::ptr::eq(&raw const **self.machine(), machine)
    }

    fn emit(&self, name: Option<Name>, value: &[u8]) -> Option<()> {
        Input::emit(self.get(name?), None, value)
    }

    fn target(&self, name: Option<Name>) -> Option<Box<dyn Any>> {
        Some(Box::new(self.get(name?).clone()))
    }

    fn subscribe(&self, subscriber: &dyn Any, on_close: Option<&dyn Any>) -> Option<Box<dyn Closing>> {
        subscribe(self, subscriber, on_close)
    }

    fn reserve(&self, capacity: usize, given: Option<&dyn Any>) -> Option<Box<dyn Closing>> {
        reserve(self, capacity, given)
    }

    fn close(&self) -> Option<()> {
        Conduit::close(self);
        Some(())
    }
}

/// A conduit that is not emitted to from outside: that of a tap. Its values need not be `Recorded`.
pub(super) struct Mirror<O>(pub(super) Conduit<O>);

impl<O: Clone + Send + 'static> Input for Mirror<O> {
    fn is_of(&self, machine: &Machine) -> bool {
        std::ptr::eq(&raw const **self.0.machine(), machine)
    }

    fn subscribe(&self, subscriber: &dyn Any, on_close: Option<&dyn Any>) -> Option<Box<dyn Closing>> {
        subscribe(&self.0, subscriber, on_close)
    }

    fn reserve(&self, capacity: usize, given: Option<&dyn Any>) -> Option<Box<dyn Closing>> {
        reserve(&self.0, capacity, given)
    }

    fn close(&self) -> Option<()> {
        self.0.close();
        Some(())
    }
}

/// See [`Input::subscribe`].
fn subscribe<E: Clone + Send + 'static>(
    conduit: &Conduit<E>,
    subscriber: &dyn Any,
    on_close: Option<&dyn Any>,
) -> Option<Box<dyn Closing>> {
    let subscriber: &Subscriber<E> = subscriber.downcast_ref()?;
    let has_on_close = on_close.is_some();
    let on_close = match on_close {
        None => None,
        Some(on_close) => {
            let OnEnd::<E>(on_close) = on_close.downcast_ref()?;
            let on_close = Arc::clone(on_close);
            Some(Box::new(move |subscription: &Subscription<E>| on_close(subscription)) as OnClose<E>)
        }
    };
    // It was accepted when it was recorded, although the circuit may have closed either before it
    // was handled.
    let subscription = conduit.prepare(subscriber, on_close);
    let hearer = Hearer::Subscriber { id: subscriber.subject().id(), has_on_close };
    conduit.begin_prepared(&subscription, hearer);
    Some(Box::new(subscription))
}

/// See [`Input::reserve`].
fn reserve<E: Clone + Send + 'static>(
    conduit: &Conduit<E>,
    capacity: usize,
    given: Option<&dyn Any>,
) -> Option<Box<dyn Closing>> {
    let Some(given) = given else {
        // It subscribes all the same: cloning values may have effects.
        return Some(Box::new(conduit.reservoir_anyway(0).ok()?));
    };
    let OnReservoir::<E>(given) = given.downcast_ref()?;
    let reservoir = conduit.reservoir_anyway(capacity).ok()?;
    let subscription = reservoir.subscription().clone();
    given.try_borrow_mut().ok()?(reservoir);
    Some(Box::new(subscription))
}

/// A tap that begins in its place in the order, with the types of its values erased.
pub(super) trait Tapping: Send {
    /// Begins it, once, and returns the means to end it.
    fn begin(&self) -> Option<Box<dyn Closing>>;

    /// Returns whether it belongs to the circuit.
    fn is_of(&self, machine: &Machine) -> bool;
}

/// A conduit and a tap of it that begins later.
pub(super) struct ToTap<E, O> {
    source: Conduit<E>,
    tap: Tap<E, O>,
    has_begun: Cell<bool>,
}

impl<E, O> ToTap<E, O> {
    pub(super) fn new(source: &Conduit<E>, tap: &Tap<E, O>) -> Self {
        Self { source: source.clone(), tap: tap.clone(), has_begun: Cell::new(false) }
    }
}

impl<E: Clone + Send + 'static, O: Clone + Send + 'static> Tapping for ToTap<E, O> {
    fn begin(&self) -> Option<Box<dyn Closing>> {
        if self.has_begun.replace(true) {
            return None;
        }
        self.tap.begin(&self.source);
        Some(Box::new(self.tap.subscription().clone()))
    }

    fn is_of(&self, machine: &Machine) -> bool {
        std::ptr::eq(&raw const **self.source.machine(), machine)
    }
}

impl<E: Recorded + Clone + Send + 'static> Input for Port<E> {
    fn is_of(&self, machine: &Machine) -> bool {
        Port::is_of(self, machine)
    }

    fn replace(&self, value: &[u8]) -> Option<()> {
        Port::replace(self, read_whole(value)?);
        Some(())
    }

    fn fail(&self, message: &str) -> Option<()> {
        Port::fail(self, message.into());
        Some(())
    }

    fn send(&self, target: &dyn Any) -> Option<()> {
        Port::emit(self, target.downcast_ref()?);
        Some(())
    }
}

impl<E: Recorded + Send + 'static> Input for Basin<E> {
    fn is_of(&self, machine: &Machine) -> bool {
        self.pipe().is_of(machine)
    }

    fn emit(&self, name: Option<Name>, value: &[u8]) -> Option<()> {
        Input::emit(self.pipe(), name, value)
    }

    fn target(&self, name: Option<Name>) -> Option<Box<dyn Any>> {
        self.pipe().target(name)
    }

    fn send(&self, target: &dyn Any) -> Option<()> {
        self.drain(target.downcast_ref()?);
        Some(())
    }
}

impl<E: Clone + Send + 'static> Closing for Subscriber<E> {
    fn close(&self) {
        Subscriber::close(self);
    }

    fn is_of(&self, machine: &Machine) -> bool {
        Subscriber::is_of(self, machine)
    }
}

impl<E: Clone + Send + 'static> Closing for Bank<E> {
    fn close(&self) {
        Bank::close(self);
    }

    fn is_of(&self, machine: &Machine) -> bool {
        Bank::is_of(self, machine)
    }
}

impl<E: Clone + Send + 'static> Closing for Reservoir<E> {
    fn close(&self) {
        Reservoir::close(self);
    }

    fn is_of(&self, machine: &Machine) -> bool {
        self.subscription().is_of(machine)
    }
}

impl<E: Clone + Send + 'static> Closing for Subscription<E> {
    fn close(&self) {
        Subscription::close(self);
    }

    fn is_of(&self, machine: &Machine) -> bool {
        Subscription::is_of(self, machine)
    }
}
