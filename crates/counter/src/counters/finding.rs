//! How counters are found by their names, and brought into memory: many together, if there are many.
//!
//! ```text
//!  absent ──► asked for ──► loaded ──► in memory
//!    │  ▲                     (by whoever comes first)
//!    ▼  │ there is no place
//!  others are put away
//! ```
//! Whoever looks for several names goes over them again and again, each time with one request for all that nobody loads yet, and waits
//! between two looks until the store has answered. Nobody waits with a lock, nor with a name that was entered as being loaded and not
//! asked for: so two who look for the same names in whatever order wait for the store, and never for each other.

use super::inbox::{Loaded, Request};
use super::key::KeyRef;
use super::names::Names;
use super::readers;
use super::settings::Settings;
use super::shard::Absent;
use super::shared::Shared;
use crate::committer::{Error, Ticket};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Of all places for keys, one caller has one in so many reserved for what is being loaded, and not more: others find some meanwhile.
const SHARE: usize = 16;

/// A name that is looked for, and what its counter is to be.
struct Sought<'name> {
    /// Its number among those that are looked for.
    number: usize,
    name: &'name [u8],
    hash: u64,
    settings: Settings,
    settings_number: u16,
    /// What is waited for before the next look.
    loading: Option<Loaded>,
}

/// What a look has shown.
enum Look {
    /// It is in memory now, or cannot be.
    Over(Result<KeyRef, Error>),
    /// Somebody has asked for it.
    Loading(Loaded),
    /// It has been entered as being loaded, and is to be asked for.
    Entered(Loaded),
    /// There is no place for it.
    Full,
}

impl Shared {
    /// The key with this name, if it is in memory.
    #[inline]
    pub(crate) fn present(&self, hash: u64, name: &[u8]) -> Option<KeyRef> {
        if let Some(inside) = readers::enter()
            && let Some(found) = self.shard(hash).find(hash, name, &inside)
        {
            return Some(found.hold());
        }
        self.hold(hash, name)
    }

    /// As [`present`](Self::present), by a lock.
    #[cold]
    fn hold(&self, hash: u64, name: &[u8]) -> Option<KeyRef> {
        self.shard(hash).lock().hold(hash, name, |name| self.hash(name))
    }

    /// The key with this name, which is loaded if it is not in memory.
    #[cold]
    pub(crate) fn locate(&self, hash: u64, name: &[u8]) -> Result<KeyRef, Error> {
        if let Some(key) = self.hold(hash, name) {
            return Ok(key);
        }
        let mut located = None;
        self.locate_each(&[name], Instant::now(), |_, key| located = Some(key));
        located.expect("every name is located, or is an error")
    }

    /// The keys with these names, in their order. Those that are not in memory are loaded together.
    pub(crate) fn locate_all<'name>(
        &self,
        names: impl IntoIterator<Item = &'name [u8]>,
        began: Instant,
    ) -> Vec<Result<KeyRef, Error>> {
        let mut absent = Names::default();
        let mut keys: Vec<_> = names
            .into_iter()
            .enumerate()
            .map(|(place, name)| {
                let key = if absent.has(name) { None } else { self.present(self.hash(name), name) };
                if key.is_none() {
                    absent.push(name, place);
                }
                key.map(Ok)
            })
            .collect();
        self.locate_each(absent.list(), began, |number, key| {
            absent.places(number).iter().for_each(|place| keys[*place] = Some(key.clone()));
        });
        keys.into_iter().map(|key| key.expect("every name is located, or is an error")).collect()
    }

    /// Calls `each` once with each of these names' numbers and its key, in any order. The names differ, and are not in memory, as far
    /// as the caller knows.
    ///
    /// They are loaded together, as many as the store is asked for at a time; what `each` does not keep may be put away for those behind
    /// it. The patience is one for all of them.
    pub(crate) fn locate_each(
        &self,
        names: &[&[u8]],
        began: Instant,
        mut each: impl FnMut(usize, Result<KeyRef, Error>),
    ) {
        let together = self.options.max_batch.min(self.share()).max(1);
        for (chunk, names) in names.chunks(together).enumerate() {
            let mut sought = Vec::with_capacity(names.len());
            for (number, name) in (chunk * together..).zip(names) {
                match self.describe(number, name) {
                    Ok(one) => sought.push(one),
                    Err(error) => each(number, Err(error)),
                }
            }
            while !sought.is_empty() {
                self.look_for_all(&mut sought, &mut each);
                self.wait_for_all(&mut sought, began, &mut each);
            }
        }
    }

    /// How many places for keys one caller has at a time, of those that not everybody needs. At least one.
    pub(crate) fn share(&self) -> usize {
        (self.options.max_keys / SHARE).max(1)
    }

    /// What is to be known of a name before it is looked for.
    fn describe<'name>(&self, number: usize, name: &'name [u8]) -> Result<Sought<'name>, Error> {
        let (length, max_name) = (name.len(), self.options.max_name);
        if length > max_name {
            return Err(Error::NameTooLong { length, max_name });
        }
        // Code of users: it runs without a lock, and before anything is entered that somebody else could wait for.
        let settings = (self.options.settings)(name).bounded();
        let settings_number = self.settings.number(&settings)?;
        Ok(Sought { number, name, hash: self.hash(name), settings, settings_number, loading: None })
    }

    /// Looks once for each of them, and asks for what nobody has asked for. Those that are over are left out.
    fn look_for_all(
        &self,
        sought: &mut Vec<Sought<'_>>,
        each: &mut impl FnMut(usize, Result<KeyRef, Error>),
    ) {
        let (mut over, mut requests) = (Vec::new(), Vec::new());
        sought.retain_mut(|one| {
            one.loading = match self.look_for(one) {
                Look::Over(key) => {
                    over.push((one.number, key));
                    return false;
                }
                Look::Loading(loaded) => Some(loaded),
                Look::Entered(loaded) => {
                    requests.push(Request::Load { name: one.name.into(), loaded: loaded.clone() });
                    Some(loaded)
                }
                Look::Full => None,
            };
            true
        });
        self.ask(requests);
        over.into_iter().for_each(|(number, key)| each(number, key));
    }

    /// Looks once, and enters a name as being loaded that is not. Then it must be asked for before anything else.
    fn look_for(&self, sought: &Sought<'_>) -> Look {
        let (hash, name) = (sought.hash, sought.name);
        let hash_of = |name: &[u8]| self.hash(name);
        let mut alone = self.shard(hash).lock();
        if let Some(key) = alone.hold(hash, name, hash_of) {
            return Look::Over(Ok(key));
        }
        let known = alone.absent(name);
        if let Some(error) = self.stopped() {
            if matches!(known, Absent::Loaded(_)) {
                self.release(1);
            }
            return Look::Over(Err(error));
        }
        match known {
            Absent::Loaded(Ok(position)) => {
                let counter = sought.settings.counter(position);
                let key = KeyRef::new(name, counter, sought.settings_number);
                alone.insert(hash, key.clone(), hash_of);
                Look::Over(Ok(key))
            }
            Absent::Loaded(Err(error)) => {
                self.release(1);
                Look::Over(Err(error))
            }
            Absent::Loading(loaded) => Look::Loading(loaded),
            Absent::Unknown if self.reserve() => Look::Entered(alone.load(name)),
            Absent::Unknown => Look::Full,
        }
    }

    /// Asks for all of these at once.
    fn ask(&self, requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        let loads = requests.len() as u64;
        // What is refused has an answer as well, which the next look finds.
        if self.inbox.request_all(requests).is_ok() {
            self.figures.loads.fetch_add(loads, Ordering::Relaxed);
        }
    }

    /// Waits until all of them that are being loaded are, or if none is until there is a place for another one. Those for which that took
    /// too long, or for which there will be no place, are left out.
    fn wait_for_all(
        &self,
        sought: &mut Vec<Sought<'_>>,
        began: Instant,
        each: &mut impl FnMut(usize, Result<KeyRef, Error>),
    ) {
        if sought.iter().any(|one| one.loading.is_some()) {
            sought.retain_mut(|one| {
                let Some(loaded) = one.loading.take() else { return true };
                let Err(error) = self.answer(&loaded, began) else { return true };
                if self.shard(one.hash).lock().give_up(one.name, &loaded) {
                    self.release(1);
                }
                each(one.number, Err(error));
                false
            });
        } else if !sought.is_empty()
            && let Err(error) = self.make_room(sought.len(), began)
        {
            sought.drain(..).for_each(|one| each(one.number, Err(error.clone())));
        }
    }

    /// Waits until there is a place for one more key, and for as many as this if that is easily done.
    fn make_room(&self, places: usize, began: Instant) -> Result<(), Error> {
        let made = Arc::new(Ticket::default());
        self.request(Request::MakeRoom { places, made: made.clone() })?;
        self.answer(&made, began)?
    }
}
