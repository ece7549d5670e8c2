//! What a replay gives inputs to, whatever its type.

use std::any::Any;
use std::sync::Arc;

use super::recorded::Recorded;
use crate::basin::Basin;
use crate::conduit::Conduit;
use crate::machine::Machine;
use crate::name::Name;
use crate::pipe::Pipe;
use crate::port::Port;
use crate::subscriber::Subscriber;
use crate::subscription::{OnClose, Subscription};

/// Something with a label. Whatever it cannot do, or not with what it is given, returns none.
pub(super) trait Input {
    /// Whether the circuit is its own.
    fn is_of(&self, machine: &Machine) -> bool;

    /// Emits a recorded value.
    fn emit(&self, _name: Option<Name>, _value: &[u8]) -> Option<()> {
        None
    }

    /// Gives a port a recorded value.
    fn replace(&self, _value: &[u8]) -> Option<()> {
        None
    }

    /// Has a port do what it does about an update that panics with this message.
    fn fail(&self, _message: &str) -> Option<()> {
        None
    }

    /// Sends what is there to this pipe.
    fn send(&self, _target: &dyn Any) -> Option<()> {
        None
    }

    /// The pipe that values are sent to, if they are sent here.
    fn target(&self, _name: Option<Name>) -> Option<Box<dyn Any>> {
        None
    }

    /// Begins a subscription, and returns what ends it.
    fn subscribe(&self, _subscriber: &dyn Any, _on_close: Option<&dyn Any>) -> Option<Box<dyn Closing>> {
        None
    }

    fn close(&self) -> Option<()> {
        None
    }
}

/// What can be closed, and no more.
pub(super) trait Closing {
    fn close(&self);

    /// Whether the circuit is its own.
    fn is_of(&self, machine: &Machine) -> bool;
}

/// What is called when a subscription has ended.
pub(super) struct OnEnd<E>(pub(super) Arc<Callback<E>>);

type Callback<E> = dyn Fn(&Subscription<E>) + Send + Sync;

/// The value that these bytes are.
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
        let subscriber: &Subscriber<E> = subscriber.downcast_ref()?;
        let on_close = match on_close {
            None => None,
            Some(on_close) => {
                let OnEnd::<E>(on_close) = on_close.downcast_ref()?;
                let on_close = Arc::clone(on_close);
                Some(Box::new(move |subscription: &Subscription<E>| on_close(subscription)) as OnClose<E>)
            }
        };
        // It was accepted when it was recorded, though the circuit may have closed either before it came to it.
        let subscription = self.begin_anyway(subscriber, on_close);
        Some(Box::new(subscription))
    }

    fn close(&self) -> Option<()> {
        Conduit::close(self);
        Some(())
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

/// A subscriber with a label.
pub(super) trait Subscribing: Closing {
    fn as_any(&self) -> &dyn Any;
}

impl<E: Clone + Send + 'static> Subscribing for Subscriber<E> {
    fn as_any(&self) -> &dyn Any {
        self
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

impl<E: Clone + Send + 'static> Closing for Subscription<E> {
    fn close(&self) {
        Subscription::close(self);
    }

    fn is_of(&self, machine: &Machine) -> bool {
        Subscription::is_of(self, machine)
    }
}
