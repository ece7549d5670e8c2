//! Components that can be closed.

use crate::circuit::Circuit;
use crate::error::ContextError;
use crate::execution::ticker::Ticker;
use crate::identity::subject::Subject;
use crate::structure::bank::Bank;
use crate::structure::conduit::Conduit;
use crate::subscription::membership::Subscription;
use crate::subscription::subscriber::Subscriber;

/// A component that lives until it is closed. Closing does not wait, and may be repeated and done
/// from anywhere.
///
/// ```
/// use tidemark_circuit::{Circuit, Resource};
///
/// fn close_all(resources: &[&dyn Resource]) {
///     resources.iter().for_each(|resource| resource.close());
/// }
///
/// let circuit = Circuit::new();
/// let conduit = circuit.conduit::<u64>()?;
/// close_all(&[&conduit, &circuit]);
/// assert!(circuit.is_closed());
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub trait Resource: Send + Sync {
    /// Returns the subject of the component.
    fn subject(&self) -> &Subject;

    /// Closes the component.
    fn close(&self);

    /// Closes the component and waits until it has ended. Fails in the context of its own circuit,
    /// which would wait for itself.
    fn close_and_settle(&self) -> Result<(), ContextError>;
}

macro_rules! resource {
    ($(impl<$($parameter:ident)?> for $resource:ty;)+) => {$(
        impl<$($parameter: Clone + Send + 'static)?> Resource for $resource {
            fn subject(&self) -> &Subject {
                Self::subject(self)
            }

            fn close(&self) {
                Self::close(self);
            }

            fn close_and_settle(&self) -> Result<(), ContextError> {
                Self::close_and_settle(self)
            }
        }
    )+};
}

resource! {
    impl<E> for Bank<E>;
    impl<> for Circuit;
    impl<E> for Conduit<E>;
    impl<E> for Subscriber<E>;
    impl<E> for Subscription<E>;
    impl<> for Ticker;
}
