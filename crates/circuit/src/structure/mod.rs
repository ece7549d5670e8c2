//! Components of a circuit: pipes, conduits, value holders, and the scopes that close them.

pub(crate) mod bank;
pub(crate) mod basin;
pub(crate) mod capture;
pub(crate) mod cell;
pub(crate) mod closed;
pub(crate) mod conduit;
pub(crate) mod handle;
pub(crate) mod newest;
pub(crate) mod pin;
pub(crate) mod pipe;
pub(crate) mod pool;
pub(crate) mod port;
pub(crate) mod reservoir;
pub(crate) mod resource;
pub(crate) mod scope;
pub(crate) mod sink;
pub(crate) mod tap;
pub(crate) mod weak_pipe;
