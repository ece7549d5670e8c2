//! No answer depends on draws that have not been made.
//!
//! The test sends the same requests to pools that have one state and different secrets. It then
//! applies the events of the first pool to all, so their states stay equal whatever their own
//! numbers would have given. A refusal, its message and the work it takes must be the same in all
//! pools: a client that is refused learns nothing about the secret.

use super::properties::{Requester, Step, catalogue, id, step};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cell::Cell;
use tidemark_pool::selector::{Alias, WideTree};
use tidemark_pool::{
    By, Catalogue, Draw, Ending, Event, Events, Item, Mode, Odds, Pool, Refusal, Repeats, Secret, Selector,
    SoldOut,
};

/// The number of pools to compare. The client uses the first; its secret could equally be that of
/// another.
const WORLDS: u8 = 4;

thread_local! {
    /// The number of costly calls to the selectors of this thread.
    static WORK: Cell<u64> = const { Cell::new(0) };
}

/// A selector that counts the calls to it.
#[derive(Debug)]
struct Counting<S>(S);

fn count() {
    WORK.set(WORK.get() + 1);
}

impl<S: Selector> Selector for Counting<S> {
    fn new(weights: &[u64]) -> Self {
        Self(S::new(weights))
    }

    fn len(&self) -> usize {
        self.0.len()
    }

    fn total(&self) -> u64 {
        self.0.total()
    }

    fn weight(&self, index: usize) -> u64 {
        self.0.weight(index)
    }

    fn select(&self, point: u64) -> usize {
        count();
        self.0.select(point)
    }

    fn in_order(&self) -> bool {
        self.0.in_order()
    }

    fn set(&mut self, index: usize, weight: u64) {
        count();
        self.0.set(index, weight);
    }

    fn push(&mut self, weight: u64) {
        self.0.push(weight);
    }

    fn pop(&mut self) {
        self.0.pop();
    }

    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }
}

/// The result of a call for a client: the draws, or the reason why the pool did nothing.
type Outcome = Result<Vec<Draw>, Refusal>;

/// Executes a step on a pool at this time.
fn call<S: Selector>(pool: &mut Pool<S>, step: &Step, now_ms: u64) -> Outcome {
    let mut draws = Vec::new();
    match step {
        Step::Draw => pool.draw().map(|draw| draws.push(draw))?,
        Step::DrawMany(count, repeats) => pool.draw_many(*count, *repeats, &mut draws)?,
        Step::Reserve(count, repeats, until_us) => {
            draws = pool.reserve(*count, *repeats, *until_us)?.draws.into();
        }
        Step::Ask(Requester { user, request }, count, repeats, until_us) => {
            let (user, request) = (user.map(|user| [user]), request.map(|request| [request]));
            let by = By {
                user: user.as_ref().map(|user| &user[..]),
                request: request.as_ref().map(|request| &request[..]),
                now_ms,
            };
            match until_us {
                None => pool.draw_by(&by, *count, *repeats, &mut draws)?,
                Some(until_us) => draws = pool.reserve_by(&by, *count, *repeats, *until_us)?.draws.into(),
            }
        }
        Step::Reweight(item, weight) => pool.reweight(&id(*item), *weight)?,
        Step::SetStock(item, stock) => pool.set_stock(&id(*item), *stock)?,
        Step::Restock(item, units) => pool.restock(&id(*item), *units)?,
        Step::GiveBack(item, units) => pool.give_back(&id(*item), *units)?,
        Step::GiveBackBy(user, item, units) => {
            pool.give_back_by(&By { user: Some(&[*user]), request: None, now_ms }, &id(*item), *units)?;
        }
        Step::Add(item, weight, stock) => {
            pool.add(&Item { id: id(*item).into(), weight: *weight, stock: *stock })?;
        }
        Step::Remove(item) => pool.remove(&id(*item))?,
        Step::End(number, Ending::Confirmed) => pool.confirm(*number)?,
        Step::End(number, _) => pool.cancel(*number)?,
        Step::Advance | Step::CatchUp(_) | Step::ExpireOne(_) => pool.catch_up(now_ms * 1000),
        // This step would give all pools the same secret.
        Step::BeginEpoch(_) | Step::Wait(_) => {}
    }
    Ok(draws)
}

/// Returns as text what a client can see of a pool without drawing: stock, odds and users.
fn seen<S: Selector>(pool: &Pool<S>) -> String {
    let (urn, odds) = (pool.urn(), Odds::of(pool.urn()));
    let entries: Vec<_> =
        urn.entries().map(|entry| (entry, odds.weight(&entry), odds.share_of(urn, &entry))).collect();
    let users: Vec<_> = (0..3_u8).map(|user| pool.counted(&[user])).collect();
    let reservations: Vec<_> = pool.reservations().collect();
    format!(
        "{entries:?} {odds:?} {} {} {users:?} {reservations:?} {:?}",
        pool.next_draw(),
        urn.version(),
        urn.next_release_ms(),
    )
}

/// Pools with the same state and different secrets.
struct Worlds<S>(Vec<Pool<S>>);

impl<S: Selector> Worlds<S> {
    fn new(catalogue: &Catalogue, seed: u8) -> Self {
        let secret = |world: u8| Secret::new([seed; 32].map(|byte| byte ^ (world + 1)));
        Self((0..WORLDS).map(|world| Pool::new(catalogue, secret(world), secret(world + WORLDS))).collect())
    }

    /// Calls all pools, applies the events of the first to all, and returns the first one's
    /// outcome.
    fn call(&mut self, step: &Step, now_ms: u64) -> Outcome {
        let outcomes = self.0.iter_mut().map(|pool| {
            pool.stage();
            let before = WORK.get();
            let outcome = call(pool, step, now_ms);
            let (work, staged) = (WORK.get() - before, pool.staged().to_vec());
            pool.revert();
            (outcome, work, staged)
        });
        let mut outcomes: Vec<_> = outcomes.collect();
        for (other, work, _) in &outcomes[1..] {
            let (first, first_work, _) = &outcomes[0];
            match (first, other) {
                (Ok(first), Ok(other)) => {
                    let numbers = |draws: &[Draw]| draws.iter().map(|draw| draw.number).collect::<Vec<_>>();
                    assert_eq!(numbers(first), numbers(other), "{step:?} has drawn as often");
                }
                (Err(first), Err(other)) => {
                    assert_eq!(first.to_string(), other.to_string(), "{step:?} is refused alike");
                    assert_eq!(first_work, work, "{step:?} is refused at the same cost");
                }
                _ => panic!("{step:?} reveals the secret: {first:?} or {other:?}"),
            }
        }
        let (outcome, _, staged) = outcomes.swap_remove(0);
        let refused = outcome.is_err();
        assert!(!refused || staged.is_empty(), "{step:?} was refused and has left {staged:?}");
        for pool in &mut self.0 {
            for event in Events::new(&staged) {
                let event: Event<'_> = event.expect("what was staged is events");
                pool.apply(&event).unwrap_or_else(|divergence| panic!("{event:?}: {divergence}"));
            }
        }
        let [first, others @ ..] = &self.0[..] else { unreachable!("there are {WORLDS} pools") };
        for other in others {
            assert_eq!(seen(first), seen(other), "behind {step:?}");
        }
        outcome
    }
}

/// Executes the steps, then requests more draws than are possible, in all ways.
fn attack<S: Selector>(catalogue: &Catalogue, seed: u8, steps: &[Step], greed: usize) {
    let mut worlds = Worlds::<S>::new(catalogue, seed);
    let mut now_ms = 0;
    for step in steps {
        now_ms += if let Step::Wait(ms) = step { *ms } else { 0 };
        _ = worlds.call(&Step::CatchUp(1), now_ms);
        _ = worlds.call(step, now_ms);
    }
    for count in [2, 3, greed, 1] {
        for repeats in [Repeats::Allowed, Repeats::Excluded] {
            let anonymous = Requester { user: None, request: None };
            for requester in [anonymous, Requester { user: Some(1), ..anonymous }] {
                for until_us in [None, Some(u64::MAX)] {
                    _ = worlds.call(&Step::Ask(requester, count, repeats, until_us), now_ms);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn a_refusal_says_the_same_whatever_the_secret(
        catalogue in catalogue(), seed: u8, steps in vec(step(), 0..20), greed in 4_usize..60,
    ) {
        attack::<Counting<WideTree>>(&catalogue, seed, &steps, greed);
        attack::<Counting<Alias>>(&catalogue, seed, &steps, greed);
    }
}

/// Returns a pool with three kinds of prizes, this many units of each, and no prize in place of
/// what is sold out.
fn prizes(left: [u64; 3], secret: u8) -> Pool<WideTree> {
    let items = [("car", 1, left[0]), ("bicycle", 3, left[1]), ("mug", 6, left[2])];
    let items = items.map(|(id, weight, left)| Item::limited(id, weight, left)).into();
    let catalogue = Catalogue::with(items, Mode::FixedOdds, SoldOut::NoPrize).expect("a catalogue");
    Pool::new(&catalogue, Secret::new([secret; 32]), Secret::new([255; 32]))
}

#[test]
fn a_call_has_as_many_draws_as_were_asked_for() {
    for secret in 0..20 {
        let mut pool = prizes([2, 5, 3], secret);
        let mut drawn = Vec::new();
        pool.draw_many(1_000, Repeats::Allowed, &mut drawn).expect("the first is possible");
        assert!(drawn.iter().map(|draw| draw.number).eq(0..1_000));
        assert_eq!(drawn.iter().filter(|draw| draw.item.is_some()).count(), 10);
        assert_eq!(pool.draw_many(2, Repeats::Allowed, &mut drawn), Err(Refusal::Empty));
        assert_eq!((drawn.len(), pool.next_draw()), (1_000, 1_000), "what is refused has no number");
    }
}

/// Returns the number of the draw that takes the last prize, as far as a client can learn it
/// without drawing.
fn last_revealed(pool: &mut Pool<WideTree>, repeats: Repeats) -> Option<u64> {
    let before = pool.next_draw();
    match pool.draw_many(100_000, repeats, &mut Vec::new()) {
        Err(Refusal::NotSoMany { left, .. } | Refusal::NotSoManyItems { left, .. }) => {
            assert_eq!(pool.next_draw(), before, "it was revealed at no cost");
            Some(before + left as u64)
        }
        _ => None,
    }
}

#[test]
fn no_refusal_reveals_which_draw_takes_the_last_prize() {
    for secret in 0..20 {
        for repeats in [Repeats::Allowed, Repeats::Excluded] {
            let revealed = last_revealed(&mut prizes([2, 5, 3], secret), repeats);
            // All three kinds are in stock: without repeats, three items are left whatever the
            // secret.
            let same = last_revealed(&mut prizes([2, 5, 3], secret + 100), repeats);
            assert_eq!(revealed, same, "secret {secret}, {repeats:?}");
        }
    }
}
