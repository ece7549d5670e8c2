//! The lines of an audit, in the terms that both formats share.

use serde::{Deserialize, Serialize};

#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Line<'a> {
    Pool(PoolLine<'a>),
    State { event: &'static str, bytes: String },
    Item(ItemLine<'a>),
    Release(ReleaseLine<'a>),
    Frame(FrameLine<'a>),
    Event(Box<EventLine<'a>>),
}

/// State of a pool before the frames that follow.
#[derive(Debug, Serialize)]
pub(super) struct PoolLine<'a> {
    pub(super) event: &'static str,
    pub(super) audit: u32,
    pub(super) key: String,
    pub(super) db: u8,
    pub(super) lsn: u64,
    /// Whether the pool is new; otherwise it has an earlier history that is not exported.
    pub(super) made: bool,
    pub(super) mode: &'static str,
    pub(super) sold_out: &'static str,
    pub(super) fallback: Option<&'a str>,
    pub(super) selector: &'static str,
    pub(super) version: u64,
    pub(super) items: usize,
    pub(super) draws: u64,
    pub(super) reservations: usize,
    pub(super) epoch: u64,
    pub(super) epoch_first_draw: u64,
    pub(super) client_seed: String,
    pub(super) commitment: String,
    pub(super) next_commitment: String,
    pub(super) chain: String,
}

/// An item of a pool.
#[derive(Debug, Serialize)]
pub(super) struct ItemLine<'a> {
    pub(super) event: &'static str,
    pub(super) version: u64,
    pub(super) item: u32,
    pub(super) id: &'a str,
    pub(super) weight: u64,
    pub(super) left: Left,
    pub(super) drawn: u64,
    /// Set for an item in another table than the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) table: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) leads_to: Option<&'a str>,
}

/// A window in which units of an item are released.
#[derive(Debug, Serialize)]
pub(super) struct ReleaseLine<'a> {
    pub(super) event: &'static str,
    pub(super) item: u32,
    pub(super) id: &'a str,
    pub(super) units: u64,
    pub(super) from: String,
    pub(super) every_ms: u64,
    pub(super) times: u64,
    pub(super) unsold: &'static str,
    /// Number of these units that were released.
    pub(super) released: u64,
}

/// A frame: the events that were logged together. They follow as lines of their own.
#[derive(Debug, Serialize)]
pub(super) struct FrameLine<'a> {
    pub(super) event: &'static str,
    pub(super) lsn: u64,
    pub(super) time_us: u64,
    pub(super) first_draw: u64,
    pub(super) chain: &'a str,
    pub(super) bytes: &'a str,
}

/// Remaining units of an item.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(untagged)]
pub(super) enum Left {
    Units(u64),
    Unlimited(&'static str),
}

/// An event of a pool. Fields that do not apply are left out.
#[derive(Debug, Default, Serialize)]
pub(super) struct EventLine<'a> {
    pub(super) event: &'static str,
    pub(super) lsn: u64,
    pub(super) time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) draw: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) epoch: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) version: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) item: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) total_weight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) odds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) left: Option<Left>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reservation: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client_seed: Option<String>,
    /// Secret of the epoch that has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commitment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) next_commitment: Option<String>,
}

/// Fields of a line by another writer that are read because they cannot be computed.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Stated {
    #[serde(default)]
    pub(super) event: String,
    #[serde(default)]
    pub(super) audit: u32,
    #[serde(default)]
    pub(super) key: String,
    #[serde(default)]
    pub(super) db: u8,
    #[serde(default)]
    pub(super) lsn: u64,
    #[serde(default)]
    pub(super) made: bool,
    #[serde(default)]
    pub(super) selector: String,
    #[serde(default)]
    pub(super) time_us: u64,
    #[serde(default)]
    pub(super) first_draw: u64,
    #[serde(default)]
    pub(super) chain: String,
    #[serde(default)]
    pub(super) bytes: String,
    #[serde(default)]
    pub(super) secret: Option<String>,
}

/// Version of the audit format.
pub(super) const AUDIT: u32 = 2;
