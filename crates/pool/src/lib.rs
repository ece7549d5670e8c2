#![doc = include_str!("../README.md")]

mod by;
mod bytes;
mod capture;
mod catalogue;
mod chained;
mod ending;
mod event;
#[cfg(feature = "files")]
pub mod file;
mod frame;
mod ids;
mod item;
pub mod journal;
mod nesting;
mod numbers;
#[cfg(feature = "original")]
pub mod original;
mod pool;
mod refusal;
mod repeats;
mod rules;
mod schedule;
mod secret;
pub mod selector;
pub mod service;
mod stocks;
mod urn;

pub use by::{By, NAME_BYTES_MAX};
pub use capture::{BLOCK_ITEMS, Capture};
pub use catalogue::{Catalogue, CatalogueError, ITEMS_MAX, Mode, SoldOut};
pub use chained::{ChainedPool, NotFollowed, Sight};
pub use ending::Ending;
pub use event::{Asked, Event, Events, Malformed, Mark, Recorder, sealed, unsealed};
pub use frame::{Chain, Frame, FrameError};
pub use item::{AMOUNT_MAX, ID_BYTES_MAX, Item, Stock};
pub use nesting::{Lead, NestingError, TABLE_DEPTH_MAX, TABLES_MAX, Table};
pub use numbers::Numbers;
pub use pool::{
    Counted, DRAWS_MAX, Divergence, Draw, ENDED_KEPT, EPOCHS_KEPT, Epoch, FIRST_DRAW_MAX, Pool, PoolImage,
    REQUEST_DRAWS_KEPT, REQUESTS_KEPT, RESERVATIONS_MAX, RESERVED_DRAWS_MAX, Reservation, Revealed,
    Savepoint, USERS_MAX, Unreadable,
};
pub use refusal::{Empty, Refusal};
pub use repeats::Repeats;
pub use rules::{
    GUARANTEE_MAX, Guarantee, Limit, RULE_ITEMS_MAX, RULES_MAX, RuleError, RuleKind, Rules, Scope, Soft,
    WINDOW_MS_MAX,
};
pub use schedule::{MOMENT_MS_MAX, RELEASES_MAX, Release, Schedule, ScheduleError, Unsold};
pub use secret::{CLIENT_SEED_BYTES_MAX, Commitment, SECRET_BYTES, Secret};
pub use selector::Selector;
pub use urn::{Change, Entry, Odds, OddsInTurn, Urn};
