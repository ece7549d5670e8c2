//! Scopes: components that are closed together.

mod closure;

use std::any::Any;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use crate::error::Fault;
use crate::failure::thrown::shielded;
use crate::identity::extent::Extent;
use crate::identity::name::Name;
use crate::identity::subject::{Id, Kind, Subject};
use crate::name;
use crate::structure::resource::Resource;
use crate::sync::unpoisoned;

pub use closure::Closure;

/// Closes its registered resources when it is closed or dropped: each one once, the last one first.
///
/// An inner scope is closed at its place among the other resources. If a resource's `close` panics,
/// the others are closed nevertheless.
///
/// Each call takes the scope's lock. A resource costs an allocation, and is kept until the scope is
/// closed or the resource's [`Closure`] is consumed.
///
/// ```
/// use tidemark_circuit::{Circuit, Scope};
///
/// let scope = Scope::new();
/// let circuit = scope.register(Circuit::new())?;
/// let conduit = scope.register(circuit.conduit::<u64>()?)?;
/// drop(scope);
/// assert!(conduit.is_closed() && circuit.is_closed());
/// # Ok::<(), tidemark_circuit::Error>(())
/// ```
#[must_use = "a scope closes what it was given when it is dropped"]
pub struct Scope {
    inner: Arc<ScopeInner>,
    /// Whether this is its creator's handle. The other handles are the `enclosure` fields of inner
    /// scopes.
    is_owner: bool,
}

struct ScopeInner {
    subject: Subject,
    enclosure: Option<Scope>,
    state: Mutex<ScopeState>,
}

#[derive(Default)]
struct ScopeState {
    closed: bool,
    /// In the order of registration.
    members: BTreeMap<u64, Member>,
    /// The key in `members` of each resource and scope.
    places: HashMap<Id, u64>,
    next_place: u64,
}

enum Member {
    Resource {
        handle: Box<dyn Resource>,
        /// The [`Closure`] returned for it, until it is consumed.
        closure: Option<AnyClosure>,
    },
    Scope(Weak<ScopeInner>),
}

type AnyClosure = Box<dyn Any + Send + Sync>;

impl Scope {
    /// Creates a scope without an enclosing scope.
    #[allow(clippy::new_without_default, reason = "each scope is one of its own")]
    pub fn new() -> Self {
        Self::named(name!("scope"))
    }

    /// Creates a scope as [`Scope::new`] does, with a name.
    pub fn named(name: Name) -> Self {
        Self::within(name, None)
    }

    fn within(name: Name, enclosure: Option<Scope>) -> Self {
        let around = enclosure.as_ref().map_or(Subject::cortex(), Scope::subject);
        let subject = Subject::new(Kind::Scope, name, Some(around.clone()));
        let inner = ScopeInner { subject, enclosure, state: Mutex::default() };
        Self { inner: Arc::new(inner), is_owner: true }
    }

    /// Returns the subject of the scope.
    pub fn subject(&self) -> &Subject {
        &self.inner.subject
    }

    /// Creates a scope within this one. Fails if this one is closed.
    pub fn scope(&self) -> Result<Scope, Fault> {
        self.scope_named(name!("scope"))
    }

    /// Creates a scope as [`Scope::scope`] does, with a name.
    pub fn scope_named(&self, name: Name) -> Result<Scope, Fault> {
        let mut state = self.open("scope")?;
        let scope = Scope::within(name, Some(self.unowned()));
        state.add(scope.subject().id(), Member::Scope(Arc::downgrade(&scope.inner)));
        Ok(scope)
    }

    /// Registers the resource to be closed with the scope, and returns it. A resource that is
    /// already registered keeps its place. Fails if the scope is closed, or if the resource has the
    /// subject of a scope within this one; the resource is not changed then.
    pub fn register<R>(&self, resource: R) -> Result<R, Fault>
    where
        R: Resource + Clone + 'static,
    {
        let mut state = self.open("register")?;
        state.closure_of(&resource).ok_or_else(|| self.mistaken("register"))?;
        Ok(resource)
    }

    /// Returns a closure, which uses the resource once and then closes it. The scope closes the
    /// resource if the closure has not. Returns the same closure for the same resource until it is
    /// consumed. Fails as [`Scope::register`].
    ///
    /// ```
    /// use tidemark_circuit::{Circuit, Scope};
    ///
    /// let scope = Scope::new();
    /// let circuit = Circuit::new();
    /// let closure = scope.closure(&circuit)?;
    /// let answer = closure.consume(|circuit| circuit.cell(42).map(|cell| cell.get()));
    /// assert_eq!(answer.transpose()?, Some(42));
    /// assert!(circuit.is_closed());
    /// # Ok::<(), tidemark_circuit::Error>(())
    /// ```
    pub fn closure<R>(&self, resource: &R) -> Result<Closure<R>, Fault>
    where
        R: Resource + Clone + 'static,
    {
        let mut state = self.open("closure")?;
        let slot = state.closure_of(resource).ok_or_else(|| self.mistaken("closure"))?;
        if let Some(known) = slot.as_ref().and_then(|known| known.downcast_ref::<Closure<R>>()) {
            return Ok(known.clone());
        }
        let closure = Closure::new(resource.clone(), &self.inner);
        *slot = Some(Box::new(closure.clone()));
        Ok(closure)
    }

    /// Closes everything that was registered, and refuses further registrations.
    pub fn close(&self) {
        self.inner.close();
    }

    fn open(&self, operation: &'static str) -> Result<MutexGuard<'_, ScopeState>, Fault> {
        let state = self.inner.lock();
        if state.closed {
            return Err(Fault::new(self.subject().clone(), operation, "the scope is closed"));
        }
        Ok(state)
    }

    /// Fault for a resource that returns the subject of a scope within this one.
    fn mistaken(&self, operation: &'static str) -> Fault {
        let message = "the resource has the subject of a scope within this one; it must have its own";
        Fault::new(self.subject().clone(), operation, message)
    }

    fn unowned(&self) -> Scope {
        Scope { inner: Arc::clone(&self.inner), is_owner: false }
    }
}

impl ScopeInner {
    fn lock(&self) -> MutexGuard<'_, ScopeState> {
        unpoisoned(self.state.lock())
    }

    fn close(&self) {
        let members = {
            let mut state = self.lock();
            state.closed = true;
            state.places.clear();
            std::mem::take(&mut state.members)
        };
        // Without the lock, because closing a member may call this scope.
        for member in members.into_values().rev() {
            shielded(|| member.close());
        }
        if let Some(enclosure) = &self.enclosure {
            enclosure.inner.forget(self.subject.id());
        }
    }

    /// Removes a closed scope, or a resource whose closure was consumed.
    fn forget(&self, id: Id) {
        let member = self.lock().remove(id);
        // Without the lock, as this may drop the last handle of a resource.
        drop(member);
    }
}

impl ScopeState {
    fn add(&mut self, id: Id, member: Member) -> u64 {
        let place = self.next_place;
        self.next_place += 1;
        self.places.insert(id, place);
        self.members.insert(place, member);
        place
    }

    fn remove(&mut self, id: Id) -> Option<Member> {
        let place = self.places.remove(&id)?;
        Some(self.members.remove(&place).expect("what has a place is a member"))
    }

    /// Returns where the closure of this resource is kept. Registers the resource if necessary.
    /// None if its subject is that of a scope.
    fn closure_of<R: Resource + Clone + 'static>(&mut self, resource: &R) -> Option<&mut Option<AnyClosure>> {
        let id = resource.subject().id();
        let place = self.places.get(&id).copied().unwrap_or_else(|| {
            self.add(id, Member::Resource { handle: Box::new(resource.clone()), closure: None })
        });
        match self.members.get_mut(&place).expect("what has a place is a member") {
            Member::Resource { closure, .. } => Some(closure),
            Member::Scope(_) => None,
        }
    }

    /// Removes and returns the closure of this resource.
    fn take_closure(&mut self, id: Id) -> Option<AnyClosure> {
        let place = self.places.get(&id)?;
        match self.members.get_mut(place).expect("what has a place is a member") {
            Member::Resource { closure, .. } => closure.take(),
            Member::Scope(_) => None,
        }
    }
}

impl Member {
    fn close(&self) {
        match self {
            Self::Resource { handle, .. } => handle.close(),
            Self::Scope(scope) => {
                if let Some(scope) = scope.upgrade() {
                    scope.close();
                }
            }
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if self.is_owner {
            self.close();
        }
    }
}

impl Extent for Scope {
    fn part(&self) -> Cow<'_, str> {
        self.subject().part()
    }

    fn enclosure(&self) -> Option<&Self> {
        self.inner.enclosure.as_ref()
    }
}

/// Returns whether both are the same scope.
impl PartialEq for Scope {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Scope {}

impl PartialOrd for Scope {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scope {
    fn cmp(&self, other: &Self) -> Ordering {
        self.subject().cmp(other.subject())
    }
}

/// Prints the path of the scopes that enclose it.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.path())
    }
}

impl Hash for Scope {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.subject().hash(state);
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(self.subject()).finish()
    }
}
