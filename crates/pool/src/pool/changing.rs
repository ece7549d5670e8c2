//! Changes of items between draws.

use super::Pool;
use super::step::Step;
use crate::catalogue::item::{Item, Stock};
use crate::draw::selector::Selector;
use crate::draw::urn::{Altered, Change, Urn};
use crate::record::event::Event;
use crate::refusal::Refusal;

impl<S: Selector> Pool<S> {
    /// Sets an item's weight: [`Urn::reweight`].
    pub fn reweight(&mut self, id: &str, weight: u64) -> Result<(), Refusal> {
        self.change(|urn| urn.reweight(id, weight), changed)
    }

    /// Sets an item's stock, whatever was left: [`Urn::set_stock`].
    pub fn set_stock(&mut self, id: &str, stock: Stock) -> Result<(), Refusal> {
        self.change(|urn| urn.set_stock(id, stock), changed)
    }

    /// Adds units to an item's stock, or removes some: [`Urn::restock`].
    pub fn restock(&mut self, id: &str, units: i64) -> Result<(), Refusal> {
        self.change(|urn| urn.restock(id, units), changed)
    }

    /// Returns drawn units to stock: [`Urn::give_back`]. Reserved units return only by
    /// [`cancel`](Self::cancel).
    pub fn give_back(&mut self, id: &str, count: u64) -> Result<(), Refusal> {
        let held = self.urn.find(id).map_or(0, |item| self.held(item));
        self.change(
            |urn| urn.give_back(id, count, held),
            |altered| Event::GivenBack { item: altered.item, count },
        )
    }

    /// Adds an item: [`Urn::add`].
    pub fn add(&mut self, item: &Item) -> Result<(), Refusal> {
        let Item { id, weight, stock } = item;
        self.change(|urn| urn.add(item), |_| Event::Added { id, weight: *weight, stock: *stock })
    }

    /// Removes an item: [`Urn::remove`].
    pub fn remove(&mut self, id: &str) -> Result<(), Refusal> {
        self.change(|urn| urn.remove(id), |altered| Event::Removed { item: altered.item })
    }

    fn change<'e>(
        &mut self,
        change: impl FnOnce(&mut Urn<S>) -> Result<Change, Refusal>,
        event: impl FnOnce(Altered) -> Event<'e>,
    ) -> Result<(), Refusal> {
        let change = change(&mut self.urn)?;
        let event = event(self.urn.altered(change.item()));
        self.note(|| Step::Changed(Box::new(change)), &event);
        Ok(())
    }
}

fn changed(altered: Altered) -> Event<'static> {
    let Altered { item, weight, stock } = altered;
    Event::Changed { item, weight, stock }
}
