//! The pool: an urn whose numbered draws follow from secrets.

mod advancing;
mod asking;
mod changing;
mod checking;
mod divergence;
mod draw;
mod drawing;
mod drawing_under_rules;
mod epoch;
mod epochs;
mod image;
mod people;
mod replaying;
mod requests;
mod reservation;
mod reservations;
mod reserving;
mod ruled;
mod staging;
mod step;
mod steps;

pub use divergence::Divergence;
pub use draw::{DRAWS_MAX, Draw};
pub use epoch::{EPOCHS_KEPT, Epoch, Revealed};
pub use image::{PoolImage, Unreadable};
pub use people::USERS_MAX;
pub use requests::{REQUEST_DRAWS_KEPT, REQUESTS_KEPT};
pub use reservation::{ENDED_KEPT, RESERVATIONS_MAX, RESERVED_DRAWS_MAX, Reservation};
pub use staging::Savepoint;

pub use ruled::Counted;

use crate::catalogue::item::AMOUNT_MAX;
use crate::catalogue::{Catalogue, SoldOut};
use crate::draw::numbers::Numbers;
use crate::draw::secret::Secret;
use crate::draw::selector::Selector;
use crate::draw::urn::Urn;
use crate::record::event::Recorder;
use crate::refusal::Refusal;
use requests::Requests;
use reservations::Reservations;
use ruled::Ruled;
use std::collections::VecDeque;
use std::fmt;
use steps::Steps;

/// Largest possible number of a pool's first draw. It leaves as many numbers for later draws.
pub const FIRST_DRAW_MAX: u64 = AMOUNT_MAX / 2;

/// A catalogue to draw from. Each draw follows from its number and a secret that is revealed later.
///
/// A pool is a deterministic state machine: it reads neither a clock nor a random source, so the
/// same calls always give the same pool. Its contents are its [`urn`](Self::urn).
///
/// ```
/// use tidemark_pool::selector::WideTree;
/// use tidemark_pool::{Catalogue, Empty, Item, Pool, Secret};
///
/// let items = vec![Item::limited("car", 1, 1), Item::limited("mug", 9, 2)];
/// // Secrets are random; these are for an example that always does the same.
/// let (secret, next) = (Secret::new([1; 32]), Secret::new([2; 32]));
/// let mut pool = Pool::<WideTree>::new(&Catalogue::new(items).unwrap(), secret, next);
///
/// let mut drawn = Vec::new();
/// while let Ok(draw) = pool.draw() {
///     drawn.push(pool.urn().id(draw.item.unwrap()).to_owned());
/// }
/// drawn.sort();
/// assert_eq!(drawn, ["car", "mug", "mug"]);
/// assert_eq!(pool.draw(), Err(Empty));
/// assert_eq!(pool.next_draw(), 3, "what is refused has no number");
/// ```
pub struct Pool<S> {
    urn: Urn<S>,
    next_draw: u64,
    epoch: Epoch,
    numbers: Numbers,
    next_secret: Secret,
    /// Past epochs, oldest first, without gaps.
    past: VecDeque<Epoch>,
    reservations: Reservations,
    requests: Requests,
    /// The rules and their counts, if there are rules.
    ruled: Option<Box<Ruled>>,
    steps: Steps,
    /// Number of leading steps that were handed over to be written.
    handed_over: usize,
    recorder: Recorder,
    staging: bool,
}

impl<S: Selector> Pool<S> {
    /// Creates a pool from a catalogue. The first epoch uses `secret`, the second `next_secret`.
    /// O(n).
    pub fn new(catalogue: &Catalogue, secret: Secret, next_secret: Secret) -> Self {
        Self::with_selector(catalogue, secret, next_secret, S::new)
    }

    /// As [`new`](Self::new), with the selector that `make` builds from the weights, for example
    /// [`AnySelector::with`](crate::draw::selector::AnySelector::with).
    pub fn with_selector(
        catalogue: &Catalogue,
        secret: Secret,
        next_secret: Secret,
        make: impl Fn(&[u64]) -> S,
    ) -> Self {
        let urn = Urn::with_selector(catalogue, make);
        let renormalises = *catalogue.sold_out() == SoldOut::Renormalise;
        let rules = catalogue.rules().resolve(|id| urn.find(id));
        let rules = rules.and_then(|rules| rules.over(urn.layout(), renormalises));
        let rules = rules.expect("a catalogue has the items that its rules name, where they can name them");
        let ruled = (!rules.is_empty()).then(|| Box::new(Ruled::new(rules)));
        Self {
            urn,
            next_draw: 0,
            numbers: Numbers::new(secret.key(b"")),
            epoch: Epoch { index: 0, first_draw: 0, secret, client_seed: Box::default() },
            next_secret,
            past: VecDeque::new(),
            reservations: Reservations::default(),
            requests: Requests::default(),
            ruled,
            steps: Steps::default(),
            handed_over: 0,
            recorder: Recorder::default(),
            staging: false,
        }
    }

    /// Sets the number of the first draw, for a pool that replaces another. Call it before any
    /// other change.
    ///
    /// # Errors
    /// [`Refusal::FirstDraw`] if the number is above [`FIRST_DRAW_MAX`], or the pool has made a
    /// draw or begun another epoch.
    pub fn number_from(&mut self, first_draw: u64) -> Result<(), Refusal> {
        if first_draw > FIRST_DRAW_MAX || self.next_draw != self.epoch.first_draw || self.epoch.index > 0 {
            return Err(Refusal::FirstDraw { first_draw, max: FIRST_DRAW_MAX });
        }
        assert!(
            self.steps.is_empty(),
            "{} steps are staged before the first draw is numbered",
            self.steps.len()
        );
        (self.next_draw, self.epoch.first_draw) = (first_draw, first_draw);
        Ok(())
    }

    /// Returns the contents: the items with their stock and odds.
    pub fn urn(&self) -> &Urn<S> {
        &self.urn
    }

    /// Returns the number of the next draw.
    pub fn next_draw(&self) -> u64 {
        self.next_draw
    }
}

impl<S> fmt::Debug for Pool<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { next_draw, epoch, .. } = self;
        f.debug_struct("Pool").field("next_draw", next_draw).field("epoch", epoch).finish_non_exhaustive()
    }
}
