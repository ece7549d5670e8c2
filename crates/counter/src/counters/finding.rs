//! Lookup of counters by name, and batched loading into memory.
//!
//! ```text
//!  absent ──► requested ──► loaded ──► in memory
//!    │  ▲                     (inserted by the first caller)
//!    ▼  │ no place
//!  another is evicted
//! ```
//! A caller that looks up several names checks them repeatedly. Each pass sends one request for all
//! names that are not being loaded, and then waits for the store. No caller waits while it holds a
//! lock, or a name that it has entered as loading but not requested. So callers with the same names
//! in any order wait for the store, and never for each other.

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

/// One caller reserves at most this fraction of all places for what it loads, so that other callers
/// find some.
const SHARE: usize = 16;

/// A name that is looked up, and what its counter is to be.
struct Sought<'name> {
    /// Its index in the caller's list.
    number: usize,
    name: &'name [u8],
    hash: u64,
    settings: Settings,
    settings_number: u16,
    /// What the caller waits for before the next pass.
    loading: Option<Loaded>,
}

/// Result of checking a name.
enum Look {
    /// It is in memory, or cannot be.
    Over(Result<KeyRef, Error>),
    /// It has been requested.
    Loading(Loaded),
    /// It has been entered as loading, and must be requested.
    Entered(Loaded),
    /// There is no place for it.
    Full,
}

impl Shared {
    /// Returns the key with this name, if it is in memory.
    #[inline]
    pub(crate) fn present(&self, hash: u64, name: &[u8]) -> Option<KeyRef> {
        if let Some(inside) = readers::enter()
            && let Some(found) = self.shard(hash).find(hash, name, &inside)
        {
            return Some(found.hold());
        }
        self.hold(hash, name)
    }

    /// As [`present`](Self::present), under a lock.
    #[cold]
    fn hold(&self, hash: u64, name: &[u8]) -> Option<KeyRef> {
        self.shard(hash).lock().hold(hash, name, |name| self.hash(name))
    }

    /// Returns the key with this name, and loads it if it is not in memory.
    #[cold]
    pub(crate) fn locate(&self, hash: u64, name: &[u8]) -> Result<KeyRef, Error> {
        if let Some(key) = self.hold(hash, name) {
            return Ok(key);
        }
        let mut located = None;
        self.locate_each(&[name], Instant::now(), |_, key| located = Some(key));
        located.expect("every name is located, or is an error")
    }

    /// Returns the keys with these names, in their order. Absent ones are loaded together.
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

    /// Calls `each` once with the index and the key of each name, in any order. The names must
    /// differ; the caller has found none of them in memory.
    ///
    /// They are loaded together, as many as one request to the store allows. Keys that `each` does
    /// not keep may be evicted for later ones. One patience covers all of them.
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

    /// Returns how many places for keys one caller may reserve at a time. At least one.
    pub(crate) fn share(&self) -> usize {
        (self.options.max_keys / SHARE).max(1)
    }

    /// Prepares the lookup of a name.
    fn describe<'name>(&self, number: usize, name: &'name [u8]) -> Result<Sought<'name>, Error> {
        let (length, max_name) = (name.len(), self.options.max_name);
        if length > max_name {
            return Err(Error::NameTooLong { length, max_name });
        }
        // Calls user code: without a lock, and before anything is entered that another caller could
        // wait for.
        let settings = (self.options.settings)(name).bounded();
        let settings_number = self.settings.number(&settings)?;
        Ok(Sought { number, name, hash: self.hash(name), settings, settings_number, loading: None })
    }

    /// Checks each name once, and requests those that are not requested. Removes the finished ones.
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

    /// Checks a name once, and enters it as loading if it is not. The caller must then request it
    /// before anything else.
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

    /// Sends all these requests together.
    fn ask(&self, requests: Vec<Request>) {
        if requests.is_empty() {
            return;
        }
        let loads = requests.len() as u64;
        // A refused request is answered too; the next pass finds the answer.
        if self.inbox.request_all(requests).is_ok() {
            self.figures.loads.fetch_add(loads, Ordering::Relaxed);
        }
    }

    /// Waits for all names that are being loaded or, if there are none, for a free place. Removes
    /// names that took too long or for which there will be no place.
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

    /// Waits until there is a place for one more key, and for `places` if that is easy.
    fn make_room(&self, places: usize, began: Instant) -> Result<(), Error> {
        let made = Arc::new(Ticket::default());
        self.request(Request::MakeRoom { places, made: made.clone() })?;
        self.answer(&made, began)?
    }
}
