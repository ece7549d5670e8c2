//! Prints what the library says of itself while a seed is replayed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::lock::lock;

thread_local! {
    static ENTERED: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// Prints events with the spans that they are in.
#[derive(Debug, Default)]
pub(super) struct Trace {
    next: AtomicU64,
    spans: Mutex<BTreeMap<u64, String>>,
}

struct Fields(String);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let _ = match field.name() {
            "message" => write!(self.0, " {value:?}"),
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

impl Subscriber for Trace {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields(span.metadata().name().to_owned());
        span.record(&mut fields);
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        lock(&self.spans).insert(id, fields.0);
        Id::from_u64(id)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Fields(String::new());
        ENTERED.with_borrow(|entered| {
            let spans = lock(&self.spans);
            for span in entered.iter().filter_map(|id| spans.get(id)) {
                let _ = write!(line.0, "{span}: ");
            }
        });
        event.record(&mut line);
        println!("    {} {} {}", event.metadata().level(), event.metadata().target(), line.0);
    }

    fn enter(&self, span: &Id) {
        ENTERED.with_borrow_mut(|entered| entered.push(span.into_u64()));
    }

    fn exit(&self, _: &Id) {
        ENTERED.with_borrow_mut(Vec::pop);
    }
}
