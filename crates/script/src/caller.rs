//! What a script calls, and what it answers.

#![allow(unsafe_code, reason = "the caller of a running script is lent to Lua's functions, which outlive it")]

use std::borrow::Cow;
use std::cell::Cell;
use std::ptr::NonNull;

/// Executes the commands of a script.
pub trait Caller {
    /// Runs a command and appends its answer, encoded in RESP2 or RESP3.
    ///
    /// # Errors
    /// The command is not run. The text is what Redis says, without a code.
    fn call(&mut self, args: &[&[u8]], is_resp3: bool, answer: &mut Vec<u8>)
    -> Result<(), Cow<'static, str>>;

    /// Called now and then while a script runs. Returns why the script must end, if it must.
    fn interrupt(&mut self) -> Option<&'static str>;

    /// Writes a line to the server's log. `level` is 0 for debug to 3 for warnings.
    fn log(&mut self, level: u8, message: &[u8]);

    /// Whether a command of this name exists, for `redis.acl_check_cmd`.
    fn knows(&self, name: &[u8]) -> bool;
}

/// Takes the answer of a script, value by value. After `array`, `map` and `set` follow their elements.
#[allow(missing_docs, reason = "each is the type of RESP of its name")]
pub trait Answer {
    /// Whether it has reached its limit: what is written then is dropped.
    fn is_full(&self) -> bool;
    fn integer(&mut self, value: i64);
    fn bulk(&mut self, bytes: &[u8]);
    fn simple(&mut self, text: &[u8]);
    /// An error, with its code, as one line.
    fn error(&mut self, text: &[u8]);
    fn null(&mut self);
    fn boolean(&mut self, value: bool);
    fn double(&mut self, value: f64);
    fn big_number(&mut self, digits: &[u8]);
    fn verbatim(&mut self, format: &[u8], text: &[u8]);
    fn array(&mut self, len: usize);
    fn map(&mut self, pairs: usize);
    fn set(&mut self, len: usize);
}

thread_local! {
    static CURRENT: Cell<Option<NonNull<dyn Caller>>> = const { Cell::new(None) };
}

/// Puts back what was there before, also if the script's thread unwinds.
struct Restore(Option<NonNull<dyn Caller>>);

impl Drop for Restore {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// Runs `work` with `caller` as the one that [`with_caller`] gives.
pub(crate) fn lend<R>(caller: &mut dyn Caller, work: impl FnOnce() -> R) -> R {
    let pointer: NonNull<dyn Caller + '_> = NonNull::from(caller);
    // SAFETY: only the lifetime changes. The pointer is used by `with_caller` alone, and `Restore` takes it
    // away before this function returns or unwinds, so within the borrow.
    let pointer: NonNull<dyn Caller> = unsafe { std::mem::transmute(pointer) };
    let _restore = Restore(CURRENT.replace(Some(pointer)));
    work()
}

/// Gives the caller of the running script; `None` if no script runs, or if its caller is in use.
pub(crate) fn with_caller<R>(work: impl FnOnce(&mut dyn Caller) -> R) -> Option<R> {
    // Taken away meanwhile, so that there is never a second reference.
    let mut pointer = CURRENT.take()?;
    let _restore = Restore(Some(pointer));
    // SAFETY: `lend` borrows the caller for as long as the pointer is here, on this thread, and while it is
    // taken away no other reference can be made.
    Some(work(unsafe { pointer.as_mut() }))
}
