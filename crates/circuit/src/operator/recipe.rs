//! Recipes: descriptions of operators, which can be attached any number of times.

use crate::Fault;
use crate::Receptor;
use crate::Subject;

/// Where a recipe is attached.
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
    /// Seed of the operators' random numbers: equal seeds give equal draws.
    pub seed: u64,
}

impl Site<'static> {
    /// Returns the site of operators outside any circuit.
    pub fn detached() -> Self {
        Self { subject: Subject::cortex(), seed: 0 }
    }
}

/// A description of operators. It can be attached any number of times; each attachment has its own
/// state.
///
/// A chain of operators is one type, so the compiler can optimise it as a whole. Only fibers and
/// flows are recipes. The receptor behind a pipe's operators is called directly, and custom recipes
/// could make it call itself.
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
    /// Type of the input values.
    type In: Send + 'static;
    /// Type of the output values.
    type Out: Send + 'static;

    /// Returns the total bytes of the values that the operators make. A circuit bounds its stack
    /// with this: beyond a limit it calls through its queue. The stack that the operators of one
    /// pipe need is the responsibility of their author. A boxed chain made by a factory counts only
    /// its output.
    fn bytes(&self) -> usize;

    /// Attaches the operators, with fresh state, in front of `next`. Fails if a factory among them
    /// refuses the site.
    fn attach<N>(&self, site: &Site<'_>, next: N) -> Result<impl Receptor<Self::In> + use<Self, N>, Fault>
    where
        N: Receptor<Self::Out> + 'static;
}

/// Seals [`Recipe`].
pub trait Sealed {}
