//! Who is who: the identity of every component, and which component encloses it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Name;

/// An identity: equal only to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(u64);

impl Id {
    pub(crate) fn fresh() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// What kind of component a subject stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[allow(missing_docs, reason = "each variant is the component of its name")]
pub enum Kind {
    Cortex,
    Bank,
    Basin,
    Cell,
    Circuit,
    Conduit,
    Current,
    Pin,
    Pipe,
    Port,
    Scope,
    Sink,
    Subscriber,
    Subscription,
    Ticker,
}

/// The identity of a component: what it is called, what it is, and what encloses it.
#[derive(Clone)]
pub struct Subject(Arc<Data>);

struct Data {
    id: Id,
    name: Name,
    kind: Kind,
    enclosure: Option<Subject>,
}

impl Subject {
    pub(crate) fn new(kind: Kind, name: Name, enclosure: Option<Subject>) -> Self {
        Self(Arc::new(Data { id: Id::fresh(), name, kind, enclosure }))
    }

    /// The identity token.
    pub fn id(&self) -> Id {
        self.0.id
    }

    /// The name.
    pub fn name(&self) -> Name {
        self.0.name
    }

    /// What kind of component it is.
    pub fn kind(&self) -> Kind {
        self.0.kind
    }

    /// The subject of the component that encloses this one; none for the cortex.
    pub fn enclosure(&self) -> Option<&Subject> {
        self.0.enclosure.as_ref()
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.name.fmt(f)
    }
}

impl fmt::Debug for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
