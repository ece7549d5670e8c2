//! Messages of `proto/rewardpool.proto`.

/// Pool whose state is requested.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct GetStateRequest {
    #[prost(string, tag = "1")]
    pub(super) pool: String,
}

/// Content of a pool.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct GetStateResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) items: Vec<RewardItem>,
}

/// Item of a pool.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct RewardItem {
    #[prost(string, tag = "1")]
    pub(super) item_id: String,
    /// -1 if unlimited. A client that reads it as an `int32` gets the lower half.
    #[prost(int64, tag = "2")]
    pub(super) quantity: i64,
    #[prost(int64, tag = "3")]
    pub(super) probability: i64,
}

/// Request for a number of draws.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct DrawRequest {
    #[prost(int32, tag = "1")]
    pub(super) count: i32,
    #[prost(string, tag = "2")]
    pub(super) pool: String,
    #[prost(bool, tag = "3")]
    pub(super) unique: bool,
    #[prost(string, tag = "4")]
    pub(super) user: String,
    #[prost(string, tag = "5")]
    pub(super) request: String,
    #[prost(bool, tag = "6")]
    pub(super) together: bool,
}

/// Result of a draw, or the reason why nothing was drawn.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct DrawResponse {
    #[prost(uint64, tag = "1")]
    pub(super) request_id: u64,
    #[prost(string, tag = "2")]
    pub(super) item_id: String,
    #[prost(string, tag = "3")]
    pub(super) error: String,
}
