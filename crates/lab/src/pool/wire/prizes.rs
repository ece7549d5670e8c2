//! Requests to servers, and checks of their answers.

use super::pipeline::Pipeline;
use crate::micro::benchmark::Work;
use anyhow::Context;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidemark_server::resp::Value;

/// Number of items in the pool; the quantity of each exceeds what can be drawn.
const ITEMS: u64 = 1_000;
const QUANTITY: u64 = 1 << 40;

/// Returns a unique name.
fn key(what: &str) -> String {
    static MADE: AtomicU64 = AtomicU64::new(0);
    format!("bench:pool:{what}:{}:{}", std::process::id(), MADE.fetch_add(1, Relaxed))
}

/// A pool on a server, removed on drop.
pub(super) struct Drawing {
    pipeline: Pipeline,
    key: String,
    /// Draws per request.
    parcel: u64,
    /// Number of the next draw.
    next: i64,
}

impl Drawing {
    pub(super) fn new(mut pipeline: Pipeline, parcel: u64, durability: &str) -> anyhow::Result<Self> {
        let key = key("draws");
        let mut create: Vec<String> =
            ["POOL.CREATE", &key, "DURABILITY", durability, "ITEMS"].map(str::to_owned).into();
        for item in 0..ITEMS {
            create.extend([item.to_string(), (1 + item % 31).to_string(), QUANTITY.to_string()]);
        }
        pipeline.call(&create)?;
        Ok(Drawing { pipeline, key, parcel, next: 0 })
    }

    /// Creates work of calls of so many draws, whose numbers must follow each other without a gap.
    pub(super) fn work(self, draws: u64) -> anyhow::Result<Work> {
        let requests = draws.div_ceil(self.parcel);
        let draws = requests * self.parcel;
        let drawing = Rc::new(RefCell::new(self));
        let drawn = Rc::clone(&drawing);
        let work = Work::calls(draws, move || drawing.borrow_mut().draw(requests))?;
        Ok(work.checked(move || drawn.borrow_mut().check().map(|()| Vec::new())))
    }

    fn draw(&mut self, requests: u64) -> anyhow::Result<std::time::Duration> {
        let Drawing { pipeline, key, parcel, next } = self;
        if *parcel == 1 {
            return pipeline.repeat(&["POOL.DRAW", key], requests, 1, |answer| expect_draw(&answer, next));
        }
        let count = parcel.to_string();
        pipeline.repeat(&["POOL.DRAW", key, "COUNT", &count], requests, *parcel, |answer| {
            let draws = answer.as_elements().context("draws are answered by something else")?;
            anyhow::ensure!(draws.len() as u64 == *parcel, "{} draws are answered", draws.len());
            draws.iter().try_for_each(|draw| expect_draw(draw, next))
        })
    }

    /// Fails unless the server has made exactly the requested draws.
    fn check(&mut self) -> anyhow::Result<()> {
        let state = self.pipeline.call(&["POOL.STATE", &self.key])?;
        let pairs = state.as_pairs().context("a state is answered by something else")?;
        let made = pairs.iter().find(|(name, _)| name.as_bytes() == Some(b"draws"));
        let made = made.and_then(|(_, number)| number.as_integer());
        anyhow::ensure!(made == Some(self.next), "{made:?} draws were made where {} should be", self.next);
        Ok(())
    }
}

impl Drop for Drawing {
    fn drop(&mut self) {
        // Best effort: the server may be gone, and its pool with it.
        let _ = self.pipeline.call(&["DEL", &self.key]);
    }
}

/// Fails unless the answer is the draw of this number and has an item.
fn expect_draw(answer: &Value, next: &mut i64) -> anyhow::Result<()> {
    let (number, item) = match answer.as_elements() {
        Some([number, item]) => (number.as_integer(), item.as_bytes()),
        _ => (None, None),
    };
    anyhow::ensure!(number == Some(*next), "draw {number:?} is answered where draw {next} is due");
    anyhow::ensure!(item.is_some_and(|item| !item.is_empty()), "draw {next} has given nothing");
    *next += 1;
    Ok(())
}

/// A key that is incremented, removed on drop.
pub(super) struct Counting {
    pipeline: Pipeline,
    key: String,
    count: i64,
}

impl Counting {
    pub(super) fn new(pipeline: Pipeline) -> anyhow::Result<Self> {
        Ok(Counting { pipeline, key: key("count"), count: 0 })
    }

    pub(super) fn work(mut self, times: u64) -> anyhow::Result<Work> {
        Work::calls(times, move || {
            let Counting { pipeline, key, count } = &mut self;
            pipeline.repeat(&["INCR", key], times, 1, |answer| {
                *count += 1;
                let found = answer.as_integer();
                anyhow::ensure!(found == Some(*count), "{found:?} is counted where {count} is due");
                Ok(())
            })
        })
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        // Best effort, as for a pool.
        let _ = self.pipeline.call(&["DEL", &self.key]);
    }
}

/// Removal of members from a set until it is empty.
#[derive(Clone, Copy, Debug)]
pub(super) struct Popping {
    /// Command that adds a member, before the key.
    pub(super) add: &'static str,
    /// Whether a score precedes each member.
    pub(super) with_score: bool,
    pub(super) pop: &'static str,
}

impl Popping {
    /// Creates work of calls that remove so many members, which are added outside the measured
    /// time.
    pub(super) fn work(self, mut pipeline: Pipeline, members: u64) -> anyhow::Result<Work> {
        let key = key("tickets");
        Work::calls(members, move || {
            let mut add = vec![self.add.to_owned(), key.clone()];
            for member in 0..members {
                // Scores in a different order than the members.
                let score = (member.wrapping_mul(0x9E37_79B9) % members).to_string();
                add.extend(self.with_score.then_some(score));
                add.push(member.to_string());
            }
            pipeline.call(&add)?;
            let took = pipeline.repeat(&[self.pop, &key], members, 1, |answer| {
                let is_there =
                    answer.as_bytes().is_some() || answer.as_elements().is_some_and(|all| !all.is_empty());
                anyhow::ensure!(is_there, "nothing is left where something should be");
                Ok(())
            })?;
            let left = pipeline.call(&["EXISTS", &key])?.as_integer();
            anyhow::ensure!(left == Some(0), "members are left that were taken out");
            Ok(took)
        })
    }
}
