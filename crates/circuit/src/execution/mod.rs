//! Execution: queues, drivers, the machine that runs one circuit, and time.

pub(crate) mod bounds;
pub(crate) mod context;
pub(crate) mod context_cell;
pub(crate) mod current;
pub(crate) mod depth;
pub(crate) mod driver;
pub(crate) mod ending;
pub(crate) mod event;
pub(crate) mod lane;
pub(crate) mod lanes;
pub(crate) mod machine;
pub(crate) mod making;
pub(crate) mod node;
pub(crate) mod pulse;
pub(crate) mod queue;
pub(crate) mod simulation;
pub(crate) mod ticker;
pub(crate) mod waiters;
