//! Changes of items between draws.
//!
//! Each method makes its change on the urn and stages it with its event. A refused call changes and
//! stages nothing.

use super::Pool;
use super::step::Step;
use crate::catalogue::item::{Item, Stock};
use crate::draw::selector::Selector;
use crate::draw::urn::{Altered, Change, Urn};
use crate::record::event::Event;
use crate::refusal::Refusal;

impl<S: Selector> Pool<S> {
    /// Sets an item's weight: [`Urn::reweight`].
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`]; [`Refusal::TooMuch`] if all weights together would be too large.
    pub fn reweight(&mut self, id: &str, weight: u64) -> Result<(), Refusal> {
        self.change(|urn| urn.reweight(id, weight), changed)
    }

    /// Sets an item's stock, whatever was left: [`Urn::set_stock`].
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`]; [`Refusal::TooMuch`]; [`Refusal::Leads`] if the item leads to a
    /// table; [`Refusal::Catalogue`] if an item of a raffle would get unlimited tickets.
    pub fn set_stock(&mut self, id: &str, stock: Stock) -> Result<(), Refusal> {
        self.change(|urn| urn.set_stock(id, stock), changed)
    }

    /// Adds units to an item's stock; a negative number removes at most as many as are left:
    /// [`Urn::restock`].
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`], [`Refusal::TooMuch`].
    pub fn restock(&mut self, id: &str, units: i64) -> Result<(), Refusal> {
        self.change(|urn| urn.restock(id, units), changed)
    }

    /// Returns drawn units to stock: [`Urn::give_back`]. Reserved units return only by
    /// [`cancel`](Self::cancel).
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`]; [`Refusal::NotDrawn`] if fewer units are drawn and not reserved.
    pub fn give_back(&mut self, id: &str, count: u64) -> Result<(), Refusal> {
        let held = self.urn.find(id).map_or(0, |item| self.held(item));
        self.change(
            |urn| urn.give_back(id, count, held),
            |altered| Event::GivenBack { item: altered.item, count },
        )
    }

    /// Adds an item, with the next number: [`Urn::add`].
    ///
    /// # Errors
    /// [`Refusal::Catalogue`] if no catalogue could have the item beside the others;
    /// [`Refusal::TooMuch`].
    pub fn add(&mut self, item: &Item) -> Result<(), Refusal> {
        let Item { id, weight, stock } = item;
        self.change(|urn| urn.add(item), |_| Event::Added { id, weight: *weight, stock: *stock })
    }

    /// Removes an item; its id can be used again, its number cannot: [`Urn::remove`].
    ///
    /// # Errors
    /// [`Refusal::UnknownItem`]; [`Refusal::IsFallback`] if it is given in place of sold-out items.
    pub fn remove(&mut self, id: &str) -> Result<(), Refusal> {
        self.change(|urn| urn.remove(id), |altered| Event::Removed { item: altered.item })
    }

    /// Makes a change on the urn and stages it with the event that `event` makes of the item's new
    /// state.
    fn change<'e>(
        &mut self,
        make: impl FnOnce(&mut Urn<S>) -> Result<Change, Refusal>,
        event: impl FnOnce(Altered) -> Event<'e>,
    ) -> Result<(), Refusal> {
        let change = make(&mut self.urn)?;
        let event = event(self.urn.altered(change.item()));
        self.note(|| Step::Changed(Box::new(change)), &event);
        Ok(())
    }
}

/// Event of an item that has a new weight or stock.
fn changed(altered: Altered) -> Event<'static> {
    let Altered { item, weight, stock } = altered;
    Event::Changed { item, weight, stock }
}
