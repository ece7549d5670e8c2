//! `ServiceOps` and `CallerOps`: a pool without a log that many callers share.

use super::served::Served;
use super::stock::{Scale, pool};
use crate::allocations;
use crate::micro::benchmark::{Benchmark, Work, on};
use crate::micro::threads::together;
use anyhow::Context;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tidemark_pool::journal::{MemoryJournal, NoJournal};
use tidemark_pool::selector::WideTree;
use tidemark_pool::service::{Answer, Drawing, Request};
use tidemark_pool::{Pool, Repeats};

/// Draws per call that makes several.
const PARCEL: u64 = 64;
/// Numbers of concurrent callers that wait for their draws.
pub(super) const CALLERS: [u64; 3] = [1, 16, 1_024];
/// Above this number callers are not threads: one thread keeps as many draws in flight.
const THREADS_MAX: u64 = 64;
/// Draws that each caller thread waits for in a call.
const TURNS: u64 = 64;
/// Later than all events here. Microseconds since 1970.
const LATER: u64 = 1 << 60;

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = pipelined();
    all.extend(waiting());
    all.extend(allocating());
    all.extend(CALLERS.map(|callers| {
        let measures = format!("drawing among 1,000 items, no log, {}", callers_phrase(callers));
        Benchmark::new(format!("CallerOps.no_log_{callers}"), measures, move |sizes| {
            by_callers(callers, Served::new(thousand(sizes.items)?, NoJournal::default())?)
        })
        .of("draw")
    }));
    all
}

fn thousand(most: u64) -> anyhow::Result<Pool<WideTree>> {
    pool(Scale::THOUSAND.items.min(most))
}

fn pipelined() -> Vec<Benchmark> {
    let by = "asking a service without a log for 10,000 draws among 1,000 items, and waiting for all of them";
    vec![
        Benchmark::new("ServiceOps.callback", format!("{by}: each is answered by a callback"), |sizes| {
            calls(Served::new(thousand(sizes.items)?, NoJournal::default())?, sizes.batch, Served::callbacks)
        })
        .at_most(80.0)
        .in_summary(),
        Benchmark::new("ServiceOps.future", format!("{by}: each by a future"), |sizes| {
            calls(Served::new(thousand(sizes.items)?, NoJournal::default())?, sizes.batch, Served::by_futures)
        })
        .at_most(80.0)
        .in_summary(),
        Benchmark::new(
            "ServiceOps.parcels",
            format!("{by}, {PARCEL} with each call, which is answered by a callback"),
            |sizes| {
                let parcels = sizes.batch.div_ceil(PARCEL);
                let served = Served::new(thousand(sizes.items)?, NoJournal::default())?;
                calls(served, parcels * PARCEL, |served, draws| served.by_parcels(draws / PARCEL, PARCEL))
            },
        )
        .at_most(15.0)
        .in_summary(),
        Benchmark::new(
            "ServiceOps.callback_memory",
            "asking a service with its log in memory for 10,000 draws among 1,000 items, and waiting for all of them: each is answered by a \
             callback",
            |sizes| {
                let served = Served::new(thousand(sizes.items)?, MemoryJournal::default())?;
                calls(served, sizes.batch, Served::callbacks)
            },
        )
        .at_most(40.0)
        .in_summary(),
    ]
    .into_iter()
    .map(|one| one.of("draw"))
    .collect()
}

/// Draws that are requested one after the other.
fn waiting() -> [Benchmark; 2] {
    [
        Benchmark::new(
            "ServiceOps.reserve_confirm",
            "setting a draw aside and confirming it, each waited for, by one caller; no log",
            |sizes| {
                let served = Served::new(thousand(sizes.items)?, NoJournal::default())?;
                let (work, served) = on(1, served, |served, _| reserve_and_confirm(served))?;
                Ok(work.checked(move || {
                    let (served, calls) = served.finish()?;
                    let state = served.call(Request::State { from: 0, count: 0 })?;
                    let Answer::State(state) = state else { anyhow::bail!("a state is something else") };
                    anyhow::ensure!(state.next_draw == calls, "{} draws are set aside", state.next_draw);
                    anyhow::ensure!(state.reservations == 0, "{} are not confirmed", state.reservations);
                    Ok(Vec::new())
                }))
            },
        )
        .of("reservation"),
        Benchmark::new(
            "ServiceOps.state",
            "asking a service how its pool of 1,000 items stands, all of them listed, by one caller",
            |sizes| {
                let served = Served::new(thousand(sizes.items)?, NoJournal::default())?;
                let items = Scale::THOUSAND.items.min(sizes.items) as usize;
                let (work, listed) = on(1, (served, 0_u64), move |(served, listed), _| {
                    if let Ok(Answer::State(state)) = served.call(Request::State { from: 0, count: items }) {
                        *listed += state.items.len() as u64;
                    }
                })?;
                Ok(work.checked(move || {
                    let ((served, listed), calls) = listed.finish()?;
                    anyhow::ensure!(listed == calls * items as u64, "{listed} items were listed");
                    served.finish()?;
                    Ok(Vec::new())
                }))
            },
        ),
    ]
}

fn reserve_and_confirm(served: &Served) -> bool {
    let request = Request::Reserve { count: 1, repeats: Repeats::Allowed, until_us: LATER };
    let Ok(Answer::Reserved(reservation)) = served.call(request) else { return false };
    served.call(Request::Confirm { number: reservation.number() }).is_ok()
}

fn allocating() -> [Benchmark; 3] {
    let rows: [(&str, &str, Ask); 3] = [
        ("callback", "answered by a callback", Served::callbacks),
        ("future", "answered by a future", Served::by_futures),
        ("blocking", "waited for", Served::one_by_one),
    ];
    rows.map(|(name, how, ask)| {
        let measures =
            format!("how often a draw {how} asks the allocator for memory, once a service was used; no log");
        Benchmark::new(format!("ServiceOps.allocations_{name}"), measures, move |sizes| {
            let mut served = Served::new(thousand(sizes.items)?, NoJournal::default())?;
            let count = sizes.batch;
            Work::amounts(count, move || {
                // The buffers first grow to their permanent size.
                (0..3).try_for_each(|_| ask(&mut served, count))?;
                let (done, allocated) = allocations::during(|| ask(&mut served, count));
                done?;
                served.finish()?;
                Ok(allocated.context("this program's allocator does not count")?.count as f64)
            })
        })
        .in_unit("allocs/op")
        .at_most(0.0)
        .in_summary()
    })
}

/// Requests draws from a service and waits for all of them.
pub(super) type Ask = fn(&mut Served, u64) -> anyhow::Result<()>;

impl Served {
    /// [`Served::by_callbacks`], as an [`Ask`].
    pub(super) fn callbacks(&mut self, count: u64) -> anyhow::Result<()> {
        self.by_callbacks(count)
    }

    /// Makes draws one after the other.
    pub(super) fn one_by_one(&mut self, count: u64) -> anyhow::Result<()> {
        (0..count).try_for_each(|_| Ok(self.draw().map(drop)?))
    }
}

/// Creates work of calls that request `draws` draws each.
pub(super) fn calls(served: Served, draws: u64, ask: Ask) -> anyhow::Result<Work> {
    let served = Rc::new(RefCell::new(served));
    let asked = Rc::clone(&served);
    let work = Work::calls(draws, move || {
        let mut served = asked.borrow_mut();
        let clock = Instant::now();
        ask(&mut served, draws)?;
        Ok(clock.elapsed())
    })?;
    Ok(work.checked(move || {
        served.borrow().finish()?;
        Ok(Vec::new())
    }))
}

/// Returns the part of a row's name that describes the callers.
pub(super) fn callers_phrase(callers: u64) -> String {
    match callers {
        1 => "by one caller that waits for each draw".to_owned(),
        callers if callers <= THREADS_MAX => {
            format!("by {callers} threads, each of which waits for its draw; time over all draws together")
        }
        callers => {
            format!("by {callers} callers, of each of whom a draw is under way: futures of one thread")
        }
    }
}

/// Creates work of callers that wait for each of their draws.
pub(super) fn by_callers(callers: u64, served: Served) -> anyhow::Result<Work> {
    if callers > THREADS_MAX {
        return under_way(callers, served);
    }
    let served = Arc::new(served);
    // The final check finds refused draws as missing.
    let work = together(callers, TURNS, Arc::clone(&served), |served, _| served.draw().is_ok())?;
    let (work, draws) = work.counted();
    Ok(work.checked(move || {
        served.expect_asked(draws.get())?;
        served.finish()?;
        Ok(Vec::new())
    }))
}

/// Keeps `callers` draws in flight; an operation waits for the oldest and starts another.
fn under_way(callers: u64, served: Served) -> anyhow::Result<Work> {
    let drawings: VecDeque<Drawing> = (0..callers).map(|_| served.begin()).collect();
    let (work, state) = on(1, (served, drawings), |(served, drawings), _| {
        let drawn = drawings.pop_front().map(Drawing::wait);
        drawings.push_back(served.begin());
        drawn
    })?;
    Ok(work.checked(move || {
        let ((served, drawings), calls) = state.finish()?;
        for drawing in drawings {
            drawing.wait()?;
        }
        served.expect_asked(calls + callers)?;
        served.finish()?;
        Ok(Vec::new())
    }))
}
