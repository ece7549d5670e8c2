//! The scripts that clients have sent, by the SHA-1 of their text.
//!
//! Scripts of `SCRIPT LOAD` stay until `SCRIPT FLUSH`; of those of `EVAL`, the ones used last. They are in
//! memory only, as in Redis: a client that is told `NOSCRIPT` sends the text.

use super::busy::RunningScripts;
use super::function_table::FunctionTable;
use super::host::ScriptHost;
use super::keys_of_text;
use crate::error::CommandError;
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tidemark_script::confined::is_confined;
use tidemark_script::script::{Script, ScriptId, hexadecimal, id_of, parse_id};
use tidemark_script::with_interpreter;

/// Scripts of `EVAL` that are kept.
const EVALUATED: usize = 500;
/// Most bytes of all texts.
const MAX_BYTES: usize = 64 << 20;

/// The error for a script that is not known.
const NO_SCRIPT: CommandError = CommandError::text("NOSCRIPT No matching script. Please use EVAL.");

struct Kept {
    script: Arc<Script>,
    /// Whether `SCRIPT LOAD` has sent it.
    is_loaded: AtomicBool,
    /// Number of the last use.
    used: AtomicU64,
}

#[derive(Default)]
struct Store {
    by_id: HashMap<ScriptId, Kept>,
    bytes: usize,
}

/// The scripts of a process.
#[derive(Default)]
pub struct Scripts {
    store: RwLock<Store>,
    uses: AtomicU64,
    host: OnceLock<Arc<dyn ScriptHost>>,
    running: RunningScripts,
    functions: FunctionTable,
}

thread_local! {
    /// The script that this thread has run last.
    static LAST: RefCell<Option<Arc<Script>>> = const { RefCell::new(None) };
}

impl Scripts {
    /// Sets what scripts use of the process. The first call counts.
    pub fn set_host(&self, host: Arc<dyn ScriptHost>) {
        // A second one would be the same process.
        drop(self.host.set(host));
    }

    /// The scripts that take long.
    #[inline]
    pub fn running(&self) -> &RunningScripts {
        &self.running
    }

    pub(super) fn functions(&self) -> &FunctionTable {
        &self.functions
    }

    pub(super) fn host(&self) -> Option<&Arc<dyn ScriptHost>> {
        self.host.get()
    }

    /// Keeps a script until [`Scripts::flush`]. Returns the hexadecimal digits of its id.
    ///
    /// # Errors
    /// It is no program, or there is no room for it.
    pub fn load(&self, text: &[u8]) -> Result<String, CommandError> {
        let script = self.of_text(text)?;
        let store = self.read();
        if let Some(kept) = store.by_id.get(&script.id) {
            kept.is_loaded.store(true, Ordering::Relaxed);
            return Ok(hexadecimal(&script.id));
        }
        // It was dropped meanwhile.
        drop(store);
        self.keep(&script, true)?;
        Ok(hexadecimal(&script.id))
    }

    /// Whether a script is known by the hexadecimal digits of its id.
    pub fn has(&self, id: &[u8]) -> bool {
        parse_id(id).is_some_and(|id| self.read().by_id.contains_key(&id))
    }

    /// Forgets all scripts.
    pub fn flush(&self) {
        let mut store = self.write();
        store.by_id.values().for_each(|kept| kept.script.forget());
        *store = Store::default();
    }

    /// Returns the number of scripts, and the bytes of their texts.
    pub fn totals(&self) -> (usize, usize) {
        let store = self.read();
        (store.by_id.len(), store.bytes)
    }

    /// Returns the script with an id in hexadecimal digits.
    pub(super) fn of_id(&self, id: &[u8]) -> Result<Arc<Script>, CommandError> {
        let last = LAST.with_borrow(|last| last.as_ref().filter(|script| script.has_digits(id)).cloned());
        if let Some(script) = last.filter(|script| !script.is_forgotten()) {
            return Ok(script);
        }
        let id = parse_id(id).ok_or(NO_SCRIPT)?;
        let store = self.read();
        let kept = store.by_id.get(&id).ok_or(NO_SCRIPT)?;
        kept.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let script = Arc::clone(&kept.script);
        LAST.set(Some(Arc::clone(&script)));
        Ok(script)
    }

    /// Returns the script of a text, which is kept.
    pub(super) fn of_text(&self, text: &[u8]) -> Result<Arc<Script>, CommandError> {
        let last = LAST.with_borrow(|last| last.as_ref().filter(|script| *script.text == *text).cloned());
        if let Some(script) = last.filter(|script| !script.is_forgotten()) {
            return Ok(script);
        }
        let id = id_of(text);
        let known = self.read().by_id.get(&id).map(|kept| {
            kept.used.store(self.uses.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
            Arc::clone(&kept.script)
        });
        let script = match known {
            Some(script) => script,
            None => {
                let script = Arc::new(compiled(text)?);
                self.keep(&script, false)?;
                script
            }
        };
        LAST.set(Some(Arc::clone(&script)));
        Ok(script)
    }

    fn keep(&self, script: &Arc<Script>, is_loaded: bool) -> Result<(), CommandError> {
        let bytes = script.text.len();
        let mut store = self.write();
        let Store { by_id, bytes: total } = &mut *store;
        while by_id.values().filter(|kept| !kept.is_loaded.load(Ordering::Relaxed)).count() >= EVALUATED
            || *total + bytes > MAX_BYTES
        {
            let oldest = by_id
                .iter()
                .filter(|(_, kept)| !kept.is_loaded.load(Ordering::Relaxed))
                .min_by_key(|(_, kept)| kept.used.load(Ordering::Relaxed))
                .map(|(id, _)| *id);
            let Some(dropped) = oldest.and_then(|id| by_id.remove(&id)) else {
                return Err(CommandError::Text(
                    format!(
                        "ERR the scripts that were loaded take {total} bytes, and with one of {bytes} more than \
                         {MAX_BYTES}: SCRIPT FLUSH forgets them"
                    )
                    .into(),
                ));
            };
            dropped.script.forget();
            *total -= dropped.script.text.len();
        }
        let used = AtomicU64::new(self.uses.fetch_add(1, Ordering::Relaxed));
        let kept = Kept { script: Arc::clone(script), is_loaded: AtomicBool::new(is_loaded), used };
        if by_id.insert(script.id, kept).is_none() {
            *total += bytes;
        }
        Ok(())
    }

    fn read(&self) -> RwLockReadGuard<'_, Store> {
        self.store.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Store> {
        self.store.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads and compiles a text.
fn compiled(text: &[u8]) -> Result<Script, CommandError> {
    let refused = |reason: String| CommandError::Text(format!("ERR {reason}").into());
    let script =
        Script::new(text, |program| is_confined(program, &keys_of_text::positions)).map_err(refused)?;
    with_interpreter(|interpreter| interpreter.compile(&script))
        .and_then(|compiled| {
            compiled.map_err(|reason| format!("Error compiling script (new function): {reason}"))
        })
        .map_err(refused)?;
    Ok(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaded_scripts_stay_and_others_give_way() {
        let scripts = Scripts::default();
        let loaded = scripts.load(b"return 'loaded'").expect("a program");
        let text = |number: usize| format!("return {number}").into_bytes();
        for number in 0..EVALUATED + 10 {
            scripts.of_text(&text(number)).expect("a program");
        }
        assert_eq!(scripts.totals().0, EVALUATED + 1);
        let known = |id: ScriptId| scripts.has(hexadecimal(&id).as_bytes());
        assert!(
            scripts.has(loaded.as_bytes()) && known(id_of(&text(EVALUATED + 9))) && !known(id_of(&text(0)))
        );
        scripts.flush();
        assert_eq!(scripts.totals(), (0, 0));
        assert!(!scripts.has(loaded.as_bytes()));
    }

    #[test]
    fn texts_that_are_no_programs_are_refused_and_not_kept() {
        let scripts = Scripts::default();
        let error = scripts.load(b"return (").expect_err("it is no program").to_string();
        assert!(error.starts_with("ERR Error compiling script (new function): user_script:1: "), "{error}");
        assert_eq!(
            scripts.load(b"#!lua").expect_err("a first line").to_string(),
            "ERR Invalid script shebang"
        );
        assert_eq!(scripts.totals(), (0, 0));
        assert_eq!(scripts.of_id(b"x").map(drop), Err(NO_SCRIPT));
    }

    #[test]
    fn loaded_scripts_have_a_limit() {
        let scripts = Scripts::default();
        let text = |byte: char| format!("return '{}'", byte.to_string().repeat(MAX_BYTES / 3)).into_bytes();
        scripts.load(&text('a')).expect("room");
        scripts.of_text(&text('b')).expect("room");
        scripts.load(&text('c')).expect("the other gives way");
        let error = scripts.load(&text('d')).expect_err("no room").to_string();
        assert!(error.contains("SCRIPT FLUSH"), "{error}");
    }
}
