#![doc = include_str!("../README.md")]

mod by;
mod catalogue;
mod draw;
mod ending;
#[cfg(feature = "files")]
pub mod file;
pub mod journal;
#[cfg(feature = "original")]
pub mod original;
mod pool;
mod record;
mod refusal;
mod repeats;
pub mod service;

pub use by::{By, NAME_BYTES_MAX};
pub use catalogue::item::{AMOUNT_MAX, ID_BYTES_MAX, Item, Stock};
pub use catalogue::nesting::{Lead, NestingError, TABLE_DEPTH_MAX, TABLES_MAX, Table};
pub use catalogue::rules::{
    GUARANTEE_MAX, Guarantee, Limit, RULE_ITEMS_MAX, RULES_MAX, RuleError, RuleKind, Rules, Scope, Soft,
    WINDOW_MS_MAX,
};
pub use catalogue::schedule::{MOMENT_MS_MAX, RELEASES_MAX, Release, Schedule, ScheduleError, Unsold};
pub use catalogue::{Catalogue, CatalogueError, ITEMS_MAX, Mode, SoldOut};
pub use draw::numbers::Numbers;
pub use draw::secret::{CLIENT_SEED_BYTES_MAX, Commitment, SECRET_BYTES, Secret};
pub use draw::selector;
pub use draw::selector::Selector;
pub use draw::urn::{Change, Entry, Odds, OddsInTurn, Urn};
pub use ending::Ending;
pub use pool::{
    Counted, DRAWS_MAX, Divergence, Draw, ENDED_KEPT, EPOCHS_KEPT, Epoch, FIRST_DRAW_MAX, Pool, PoolImage,
    REQUEST_DRAWS_KEPT, REQUESTS_KEPT, RESERVATIONS_MAX, RESERVED_DRAWS_MAX, Reservation, Revealed,
    Savepoint, USERS_MAX, Unreadable,
};
pub use record::capture::{BLOCK_ITEMS, Capture};
pub use record::chained::{ChainedPool, NotFollowed, Sight};
pub use record::event::{Asked, Event, Events, Malformed, Mark, Recorder, sealed, unsealed};
pub use record::frame::{Chain, Frame, FrameError};
pub use refusal::{Empty, Refusal};
pub use repeats::Repeats;
