//! Export of signals to `tracing`.

use tracing::{debug, error, warn};

use super::{Observation, Sign, Symbol, situations};
use crate::error::Fault;
use crate::failure::thrown::shielded;
use crate::identity::subject::Subject;
use crate::structure::conduit::Conduit;
use crate::subscription::membership::Subscription;
use crate::subscription::registrar::Registrar;

/// Sends the emissions of a conduit's instruments to `tracing` from now on, until the subscription
/// is closed. Each one is an event with the target `tidemark_circuit::signals` and the fields
/// `subject` (the instrument's name), `vocabulary` and `sign`, and `dimension` and `status` if
/// there are any. The level is warn for a warning, error for a critical situation, and debug
/// otherwise.
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
            registrar.receptor(move |observation: O| shielded(|| report(subject.path(), observation)));
        })?;
    conduit.subscribe(&subscriber)
}

fn report<O: Observation>(subject: &str, observation: O) {
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
