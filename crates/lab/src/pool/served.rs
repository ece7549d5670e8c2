//! A pool in a service, and a check that every call was answered.

use super::stock::quantity;
use crate::micro::lateness::Lateness;
use crate::micro::tally::Take;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};
use tidemark_pool::journal::Journal;
use tidemark_pool::service::{
    Answer, CallError, Drawing, Outcome, Request, STATE_ITEMS_MAX, Service, Settings, State,
};
use tidemark_pool::{ChainedPool, Draw, Pool, Repeats, Selector, Stock};

/// A service, its requests and their results.
pub(super) struct Served {
    service: Service,
    /// Leaked, some bytes per service: reference counting in callbacks would cost more than some
    /// draws.
    answers: &'static Answers,
    /// Quantity of each item, if it is limited and equal for all.
    quantity: u64,
    asked: Arc<AtomicU64>,
    /// Number of draws that callbacks answer.
    called: AtomicU64,
    /// Draws in progress.
    drawings: Vec<Drawing>,
}

/// Results received by callbacks.
#[derive(Debug, Default)]
struct Answers {
    made: AtomicU64,
    refused: AtomicU64,
}

impl Answers {
    #[inline]
    fn take(&self, is_made: bool, draws: u64) {
        // Only the service's thread calls back, so there is no contention.
        let to = if is_made { &self.made } else { &self.refused };
        to.store(to.load(Relaxed) + draws, Relaxed);
    }
}

impl Served {
    pub(super) fn new<S: Selector + Send + 'static>(
        pool: Pool<S>,
        journal: impl Journal + 'static,
    ) -> anyhow::Result<Self> {
        Self::of(ChainedPool::new(pool), journal)
    }

    /// Creates a service for a pool whose log so far is in the journal.
    pub(super) fn of<S: Selector + Send + 'static>(
        pool: ChainedPool<S>,
        journal: impl Journal + 'static,
    ) -> anyhow::Result<Self> {
        let quantity = quantity(pool.pool.urn().len() as u64);
        let asked = Arc::new(AtomicU64::new(pool.pool.next_draw()));
        let service = Service::start(pool, journal, now_us, Settings::default())?;
        Ok(Served {
            service,
            answers: Box::leak(Box::default()),
            quantity,
            asked,
            called: AtomicU64::new(0),
            drawings: Vec::new(),
        })
    }

    /// Makes `count` draws without waiting, each answered by a callback; then waits for one more
    /// draw.
    pub(super) fn by_callbacks(&self, count: u64) -> anyhow::Result<()> {
        for _ in 1..count {
            let answers = self.answers;
            self.service.draw_with(move |drawn| answers.take(drawn.is_ok(), 1));
        }
        self.will_call(count - 1);
        self.draw()?;
        Ok(())
    }

    /// Like [`by_callbacks`](Self::by_callbacks), with a future for each answer.
    pub(super) fn by_futures(&mut self, count: u64) -> anyhow::Result<()> {
        self.drawings.extend((0..count).map(|_| self.service.draw_async()));
        self.asked.fetch_add(count, Relaxed);
        for drawing in self.drawings.drain(..) {
            drawing.wait()?;
        }
        Ok(())
    }

    /// Like [`by_callbacks`](Self::by_callbacks), with `draws` draws per call.
    pub(super) fn by_parcels(&self, calls: u64, draws: u64) -> anyhow::Result<()> {
        let parcel = || Request::DrawMany { count: draws as usize, repeats: Repeats::Allowed };
        for _ in 1..calls {
            let answers = self.answers;
            self.service.call_with(parcel(), move |drawn: Outcome| answers.take(drawn.is_ok(), draws));
        }
        self.will_call((calls - 1) * draws);
        self.asked.fetch_add(draws, Relaxed);
        self.service.call(parcel())?;
        Ok(())
    }

    /// Registers draws that will be answered by callbacks.
    #[inline]
    fn will_call(&self, draws: u64) {
        self.asked.fetch_add(draws, Relaxed);
        self.called.fetch_add(draws, Relaxed);
    }

    /// Makes one draw and waits for it.
    #[inline]
    pub(super) fn draw(&self) -> Result<Draw, CallError> {
        self.asked.fetch_add(1, Relaxed);
        self.service.draw()
    }

    /// Makes one draw that was due at `due`, and records its latency.
    pub(super) fn draw_late(&self, lateness: &Arc<Lateness>, due: u64) {
        self.will_call(1);
        let (answers, lateness) = (self.answers, Arc::clone(lateness));
        self.service.draw_with(move |drawn| {
            answers.take(drawn.is_ok(), 1);
            if drawn.is_ok() {
                Lateness::clone(&lateness).take(due);
            }
        });
    }

    /// Begins a draw.
    pub(super) fn begin(&self) -> Drawing {
        self.asked.fetch_add(1, Relaxed);
        self.service.draw_async()
    }

    pub(super) fn call(&self, request: Request) -> Outcome {
        self.service.call(request)
    }

    /// Returns the live count of requested draws.
    #[cfg(feature = "log")]
    pub(super) fn asked(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.asked)
    }

    /// Fails unless exactly `draws` draws were requested.
    pub(super) fn expect_asked(&self, draws: u64) -> anyhow::Result<()> {
        let asked = self.asked.load(Relaxed);
        anyhow::ensure!(asked == draws, "{asked} draws were asked for where {draws} should have been");
        Ok(())
    }

    /// Fails unless all requested draws were made, each took one unit, and the log has them.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        let asked = self.asked.load(Relaxed);
        let (made, sum) = self.books()?;
        anyhow::ensure!(made == asked, "{made} draws were made where {asked} were asked for");
        anyhow::ensure!(sum == asked, "{sum} units are drawn where {asked} should be");
        self.service.stop()?;
        // No callback is outstanding any more.
        let Answers { made, refused } = self.answers;
        let (made, refused) = (made.load(Relaxed), refused.load(Relaxed));
        anyhow::ensure!(refused == 0, "{refused} draws were refused");
        let called = self.called.load(Relaxed);
        anyhow::ensure!(made == called, "{made} draws were answered by a callback where {called} should be");
        Ok(())
    }

    /// Returns the number of draws and of the units that they took.
    fn books(&self) -> anyhow::Result<(u64, u64)> {
        let (mut from, mut sum) = (0, 0);
        loop {
            let request = Request::State { from, count: STATE_ITEMS_MAX };
            let Answer::State(state) = self.service.call(request)? else {
                anyhow::bail!("a state is answered by something else");
            };
            let State { next_draw, items, next, .. } = *state;
            for item in items {
                let left = Stock::Limited(self.quantity - item.drawn);
                anyhow::ensure!(item.stock == left, "of item {} there is {:?} left", item.id, item.stock);
                sum += item.drawn;
            }
            match next {
                Some(next) => from = next,
                None => return Ok((next_draw, sum)),
            }
        }
    }
}

/// Microseconds since 1970.
fn now_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::Served;
    use crate::pool::stock::pool;
    use tidemark_pool::journal::{Fault, FaultyJournal, MemoryJournal, Plan};
    use tidemark_pool::selector::WideTree;

    #[test]
    fn what_is_asked_by_whatever_way_is_counted_and_answered() {
        let mut served = Served::new(pool::<WideTree>(4).unwrap(), MemoryJournal::default()).unwrap();
        served.by_callbacks(10).unwrap();
        served.by_futures(10).unwrap();
        served.by_parcels(3, 5).unwrap();
        served.draw().unwrap();
        served.finish().unwrap();
    }

    #[test]
    fn a_log_that_fails_is_a_failure() {
        let journal = FaultyJournal::new(MemoryJournal::default(), Plan { fault: Fault::Append, at: 2 });
        let served = Served::new(pool::<WideTree>(4).unwrap(), journal).unwrap();
        served.draw().unwrap();
        assert!(served.by_callbacks(10).is_err());
        assert!(served.finish().is_err());
    }
}
