//! Sealed events: without secrets, for readers that must not predict draws.
//!
//! The event that begins an epoch contains the secret of the following epoch. A sealed event has
//! its commitment instead, which has the same length. A reader that learns the secret later can
//! restore the exact bytes of the log.

use super::{Event, Events, Malformed, Recorder};
use crate::draw::secret::{Commitment, Secret};

/// Seals events. O(n).
///
/// # Errors
/// [`Malformed`].
pub fn sealed(events: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut recorder = Recorder::default();
    for event in Events::new(events) {
        recorder.record(&with_secret(event?, |secret| Secret::sealed(secret.commitment())));
    }
    Ok(recorder.bytes().to_vec())
}

/// Restores the secret of a sealed event, if `known` returns it.
pub fn unsealed(event: Event<'_>, known: impl Fn(Commitment) -> Option<Secret>) -> Event<'_> {
    with_secret(event, |secret| {
        let commitment = Commitment(*secret.reveal());
        known(commitment).unwrap_or_else(|| Secret::sealed(commitment))
    })
}

fn with_secret(event: Event<'_>, change: impl FnOnce(&Secret) -> Secret) -> Event<'_> {
    match event {
        Event::Epoch { client_seed, after } => Event::Epoch { client_seed, after: change(&after) },
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_reproduces_the_events_of_the_log() {
        let secret = Secret::new([5; 32]);
        let mut log = Recorder::default();
        log.drew(Some(3));
        log.record(&Event::Epoch { client_seed: b"luck", after: secret.clone() });
        let published = sealed(log.bytes()).expect("events");
        assert_eq!(published.len(), log.bytes().len());
        assert!(!published.windows(32).any(|bytes| bytes == secret.reveal()));

        let again = |known: Option<Secret>| {
            let mut recorder = Recorder::default();
            for event in Events::new(&published) {
                recorder.record(&unsealed(event.expect("an event"), |_| known.clone()));
            }
            recorder.bytes().to_vec()
        };
        assert_eq!(again(Some(secret)), log.bytes());
        assert_eq!(again(None), published);
        assert!(sealed(&[255]).is_err());
    }
}
