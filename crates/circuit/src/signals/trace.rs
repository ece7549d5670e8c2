//! Signals for `tracing`.

use tracing::{debug, error, warn};

use super::{Observation, Sign, Symbol, situations};
use crate::error::Fault;
use crate::failure::thrown::shielded;
use crate::identity::subject::Subject;
use crate::structure::conduit::Conduit;
use crate::subscription::membership::Subscription;
use crate::subscription::registrar::Registrar;

/// Has everything that a conduit's instruments say from here on go to `tracing`, until the subscription is closed: an event each,
/// with the target `tidemark_circuit::signals` and the fields `subject` (the instrument's name), `vocabulary`, `sign`, and where
/// there are any, `dimension` and `status`. Its level follows from the situation: debug, but warn for a warning and error for what
/// is critical.
///
/// Fails if the conduit is closed.
///
/// ```
/// use tidemark_circuit::signals::{caches, trace};
/// use tidemark_circuit::{Circuit, name};
///
/// let circuit = Circuit::new();
/// let conduit = circuit.conduit::<caches::Sign>()?;
/// let subscription = trace(&conduit)?;
/// caches::pool(&conduit).get(name!("web.sessions")).unwrap().miss(); // a warning
/// subscription.close();
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
pub fn trace<O: Observation>(conduit: &Conduit<O>) -> Result<Subscription<O>, Fault> {
    let subscriber =
        conduit.circuit().subscriber(|subject: &Subject, registrar: &mut Registrar<'_, O>| {
            let subject = subject.name();
            registrar.receptor(move |observation: O| shielded(|| tell(subject.path(), observation)));
        })?;
    conduit.subscribe(&subscriber)
}

fn tell<O: Observation>(subject: &str, observation: O) {
    let (vocabulary, dimension) = (O::Sign::VOCABULARY, observation.dimension());
    let sign = observation.sign();
    let status = sign.status().map(Symbol::name);
    let sign_name = sign.name();
    match sign.situation() {
        Some(situations::Sign::Critical) => {
            error!(target: "tidemark_circuit::signals", subject, vocabulary, sign = sign_name, dimension, status);
        }
        Some(situations::Sign::Warning) => {
            warn!(target: "tidemark_circuit::signals", subject, vocabulary, sign = sign_name, dimension, status);
        }
        Some(situations::Sign::Normal) | None => {
            debug!(target: "tidemark_circuit::signals", subject, vocabulary, sign = sign_name, dimension, status);
        }
    }
}
