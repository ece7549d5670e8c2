//! Beginning and revealing epochs.

use super::Pool;
use super::epoch::{EPOCHS_KEPT, Epoch, Revealed};
use super::step::Step;
use crate::draw::numbers::Numbers;
use crate::draw::secret::{CLIENT_SEED_BYTES_MAX, Commitment, Secret};
use crate::draw::selector::Selector;
use crate::record::event::Event;
use crate::refusal::Refusal;

impl<S: Selector> Pool<S> {
    /// Returns the current epoch, which the next draw belongs to.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Returns the SHA-256 of the current epoch's secret.
    pub fn commitment(&self) -> Commitment {
        self.epoch.secret.commitment()
    }

    /// Returns the SHA-256 of the next epoch's secret. The secret is fixed before a client can add
    /// a seed, so the operator cannot choose it to suit the seed.
    pub fn next_commitment(&self) -> Commitment {
        self.next_secret.commitment()
    }

    /// Ends the current epoch and begins the next one, whose secret is already committed to.
    /// `client_seed` has up to [`CLIENT_SEED_BYTES_MAX`] bytes, which the new epoch's draws also
    /// follow from. `after` is the secret of the epoch after that. If the call is staged, reveal
    /// the secret only after the commit.
    ///
    /// # Errors
    /// [`Refusal::SeedTooLong`].
    pub fn begin_epoch(&mut self, client_seed: &[u8], after: Secret) -> Result<Revealed, Refusal> {
        if client_seed.len() > CLIENT_SEED_BYTES_MAX {
            return Err(Refusal::SeedTooLong { bytes: client_seed.len(), max: CLIENT_SEED_BYTES_MAX });
        }
        let secret = std::mem::replace(&mut self.next_secret, after);
        let begun = Epoch {
            index: self.epoch.index + 1,
            first_draw: self.next_draw,
            secret,
            client_seed: client_seed.into(),
        };
        self.numbers = Numbers::new(begun.key());
        let over = std::mem::replace(&mut self.epoch, begun);
        self.past.push_back(over.clone());
        let forgotten = if self.past.len() > EPOCHS_KEPT { self.past.pop_front() } else { None };
        if self.staging {
            let event = Event::Epoch { client_seed, after: self.next_secret.clone() };
            self.note(|| Step::Epoch(forgotten.map(Box::new)), &event);
        }
        Ok(Revealed { epoch: over, end: self.next_draw })
    }

    /// Returns a past epoch if it is among the last [`EPOCHS_KEPT`]. O(1).
    pub fn revealed(&self, index: u64) -> Option<Revealed> {
        let place = usize::try_from(index.checked_sub(self.first_known())?).ok()?;
        let epoch = self.past.get(place)?.clone();
        let end = self.past.get(place + 1).unwrap_or(&self.epoch).first_draw;
        Some(Revealed { epoch, end })
    }

    /// Returns the index of the first epoch whose secret is kept; it may be the current one.
    pub fn first_known(&self) -> u64 {
        self.epoch.index - self.past.len() as u64
    }

    pub(super) fn undo_epoch(&mut self, forgotten: Option<Epoch>) {
        let epoch = self.past.pop_back();
        let epoch = epoch.unwrap_or_else(|| panic!("epoch {} has none before it", self.epoch.index));
        self.numbers = Numbers::new(epoch.key());
        let begun = std::mem::replace(&mut self.epoch, epoch);
        self.next_secret = begun.secret;
        if let Some(forgotten) = forgotten {
            self.past.push_front(forgotten);
        }
    }
}
