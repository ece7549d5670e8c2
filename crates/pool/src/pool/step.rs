//! Steps that can be taken back.

use super::epoch::Epoch;
use super::people::Before;
use super::requests::Forgotten;
use super::reservation::Reservation;
use crate::draw::urn::{Advance, Change};
use crate::ending::Ending;

/// What was done that is not a draw, as far as it takes to undo it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// An item was changed by hand.
    Changed(Box<Change>),
    /// The schedule has gone on.
    Advanced(Box<Advance>),
    /// Draws were set aside.
    Reserved(u64),
    /// A reservation has ended.
    Ended(Box<Ended>),
    /// A request was kept, and others were forgotten for it.
    Requested(Vec<Forgotten>),
    /// Draws or wins were counted, which changed users and what is counted for the whole pool.
    Counted(Box<(Vec<Before>, Box<[u64]>)>),
    /// An epoch has begun, and for the one before it another was forgotten.
    Epoch(Option<Box<Epoch>>),
}

/// What it takes to undo the end of a reservation.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) reservation: Reservation,
    pub(super) changes: Vec<Change>,
    /// What was forgotten for it.
    pub(super) forgotten: Option<(u64, Ending)>,
}
