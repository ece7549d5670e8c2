//! Steps that can be undone.

use super::epoch::Epoch;
use super::people::Before;
use super::requests::Forgotten;
use super::reservation::Reservation;
use crate::draw::urn::{Advance, Change};
use crate::ending::Ending;

/// A step that is not a draw, with what is needed to undo it.
#[derive(Debug, Clone)]
pub(super) enum Step {
    /// An operator changed an item.
    Changed(Box<Change>),
    /// The schedule advanced.
    Advanced(Box<Advance>),
    /// Draws were reserved. The number is the reservation's.
    Reserved(u64),
    /// A reservation ended.
    Ended(Box<Ended>),
    /// A request was kept, and these older ones were evicted.
    Requested(Vec<Forgotten>),
    /// Draws or wins were counted: the users that changed, and the pool-wide counts before.
    Counted(Box<(Vec<Before>, Box<[u64]>)>),
    /// An epoch began, and this older one was evicted.
    Epoch(Option<Box<Epoch>>),
}

/// What is needed to undo the end of a reservation.
#[derive(Debug, Clone)]
pub(super) struct Ended {
    pub(super) reservation: Reservation,
    pub(super) changes: Vec<Change>,
    /// Older ending that was evicted.
    pub(super) forgotten: Option<(u64, Ending)>,
}
