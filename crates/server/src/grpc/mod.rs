//! Draws from pools over gRPC: `rewardpool.RewardPoolService`, defined in `proto/rewardpool.proto`,
//! as in the system that pools originate from.
//!
//! ```text
//! listener ─► service ─┬► drawing ─┬► pool ─► http/running: commands of the table
//!  (places)   (paths)  └► state ───┘
//!                      description: the service for reflection
//! ```

#[cfg(feature = "grpc")]
mod description;
#[cfg(feature = "grpc")]
mod drawing;
#[cfg(all(feature = "grpc", feature = "fuzzing"))]
pub(crate) mod fuzzing;
#[cfg(feature = "grpc")]
mod listener;
#[cfg(feature = "grpc")]
mod messages;
#[cfg(feature = "grpc")]
mod pool;
#[cfg(feature = "grpc")]
mod running;
#[cfg(feature = "grpc")]
mod service;
#[cfg(feature = "grpc")]
mod state;
#[cfg(not(feature = "grpc"))]
mod without;

#[cfg(feature = "grpc")]
pub(crate) use running::Grpc;
#[cfg(not(feature = "grpc"))]
pub(crate) use without::Grpc;

/// Returns why gRPC cannot be served; `None` if it can.
pub(crate) fn objection() -> Option<String> {
    let without = "cannot be used: this program was built without its feature `grpc`";
    cfg!(not(feature = "grpc")).then(|| without.to_owned())
}
