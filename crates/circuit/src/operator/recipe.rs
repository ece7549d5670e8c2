//! A description of operators, which can be turned into running operators any number of times.

use crate::Fault;
use crate::Receptor;
use crate::Subject;

/// Where a recipe is being attached.
///
/// ```
/// use tidemark_circuit::{Fiber, Receptor, Recipe, Site};
///
/// let (sender, receiver) = std::sync::mpsc::channel();
/// let next = move |value: i32| sender.send(value).unwrap();
/// let mut receptor = Fiber::<i32>::new().diff().attach(&Site::detached(), next)?;
/// [1, 1, 2].into_iter().for_each(|value| receptor.receive(value));
/// assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [1, 2]);
/// # Ok::<(), tidemark_circuit::Fault>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// The subject of the receptor behind the operators.
    pub subject: &'a Subject,
    /// The seed of the random numbers that the operators may draw: equal seeds give equal draws.
    pub seed: u64,
}

impl Site<'static> {
    /// The site of operators outside of any circuit.
    pub fn detached() -> Self {
        Self { subject: Subject::cortex(), seed: 0 }
    }
}

/// What turns values of one type into values of another, any number of times: each attachment has its own state.
///
/// A chain of operators is one type, so the compiler sees all of them at once. Fibers and flows are recipes, and nothing else
/// can be one: what is behind a pipe's operators is called directly, and must not get to where it could call itself.
///
/// ```compile_fail
/// use tidemark_circuit::{Fault, Receptor, Recipe, Site};
///
/// #[derive(Clone)]
/// struct Mine;
///
/// impl Recipe for Mine {
///     type In = u64;
///     type Out = u64;
///
///     fn bytes(&self) -> usize {
///         size_of::<u64>()
///     }
///
///     fn attach<N>(&self, _: &Site<'_>, next: N) -> Result<impl Receptor<u64> + use<N>, Fault>
///     where
///         N: Receptor<u64> + 'static,
///     {
///         Ok(next)
///     }
/// }
/// ```
pub trait Recipe: Sealed + Clone + Send + Sync + 'static {
    /// What goes in.
    type In: Send + 'static;
    /// What comes out.
    type Out: Send + 'static;

    /// How many bytes the values have that the operators make, all together: a circuit calls on by its queue where these are many, to
    /// keep its stack small. What the operators of one pipe need is up to whoever chains them. Of a boxed chain that a factory makes only
    /// what comes out is known.
    fn bytes(&self) -> usize;

    /// The operators with fresh state, ahead of `next`. Fails if a factory among them refuses the site.
    fn attach<N>(&self, site: &Site<'_>, next: N) -> Result<impl Receptor<Self::In> + use<Self, N>, Fault>
    where
        N: Receptor<Self::Out> + 'static;
}

/// Keeps [`Recipe`] to this crate.
pub trait Sealed {}
