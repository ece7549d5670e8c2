//! Events without the secrets in them, for those who are not to know what will be drawn.
//!
//! An epoch's event has the secret of the epoch behind it. In sealed events the commitment stands in its place, which has as many bytes; so
//! whoever gets to know the secret later has the very bytes again that are in the log.

use super::{Event, Events, Malformed, Recorder};
use crate::draw::secret::{Commitment, Secret};

/// The same events, sealed. O(n).
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

/// A sealed event with its secret, if that is known by now.
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
    fn whoever_has_the_secret_has_the_events_of_the_log_again() {
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
