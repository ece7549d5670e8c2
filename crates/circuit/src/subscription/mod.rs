//! Subscribers, the registrars that they register receptors with, and the paths from sources to
//! receptors.

pub(crate) mod attachment;
pub(crate) mod fan_out;
pub(crate) mod lifetime;
pub(crate) mod membership;
pub(crate) mod receptor;
pub(crate) mod registered;
pub(crate) mod registrar;
pub(crate) mod subscriber;
