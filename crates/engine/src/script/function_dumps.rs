//! `FUNCTION DUMP` and `FUNCTION RESTORE`: all libraries in one payload.
//!
//! A restore checks everything before it changes anything: the payload, the program of each library in it, and
//! the names of libraries and functions. So it loads all of them or none.

use super::command::{DELETE, SET};
use super::functions::{Change, MAX_LIBRARIES, MAX_LIBRARY_BYTES, failure, wrong_number};
use crate::command::parse;
use crate::context::Keys;
use crate::engine::Engine;
use crate::error::CommandError;
use crate::execute::call::Call;
use crate::rdb::{self, RdbError, Reader};
use crate::wire::reply::Reply;
use std::collections::{BTreeMap, HashSet};
use std::time::Duration;
use tidemark_script::functions::{Library, LibraryHead};

/// How long the programs of all libraries of a payload may take together.
const RESTORE_TIME: Duration = Duration::from_secs(5);

/// What becomes of the libraries that are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// They are removed.
    Flush,
    /// They stay, and none may have the name of a new one.
    Append,
    /// A new one replaces that of its name.
    Replace,
}

impl Policy {
    fn of(option: Option<&[u8]>) -> Result<Self, CommandError> {
        match option {
            None => Ok(Self::Append),
            Some(word) if parse::is(word, "APPEND") => Ok(Self::Append),
            Some(word) if parse::is(word, "REPLACE") => Ok(Self::Replace),
            Some(word) if parse::is(word, "FLUSH") => Ok(Self::Flush),
            Some(_) => Err(CommandError::text(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            )),
        }
    }
}

impl Engine {
    /// `FUNCTION DUMP`. O(bytes of the libraries).
    pub(super) fn dump_libraries(keys: &Keys<'_>, reply: &mut Reply) -> Result<(), CommandError> {
        let mut libraries = BTreeMap::new();
        keys.for_each_library(|name, text| {
            libraries.insert(name.to_vec(), text.to_vec());
        });
        let mut payload = Vec::new();
        libraries.values().for_each(|text| rdb::put_library(&mut payload, text));
        rdb::seal(&mut payload);
        reply.bulk(&payload);
        Ok(())
    }

    /// `FUNCTION RESTORE payload [FLUSH | APPEND | REPLACE]`
    pub(super) fn restore_libraries(
        &self,
        call: &Call<'_>,
        keys: &mut Keys<'_>,
        reply: &mut Reply,
    ) -> Result<(), CommandError> {
        let (payload, policy) = match call.args.get(2..).unwrap_or_default() {
            [payload] => (*payload, Policy::of(None)?),
            [payload, policy] => (*payload, Policy::of(Some(policy))?),
            _ => return Err(wrong_number(call)),
        };
        let content = rdb::open(payload).map_err(RdbError::refusal)?;
        let loaded = self.libraries_of(content)?;
        let present = self.functions(keys)?;
        let kept = |library: &Library| match policy {
            Policy::Flush => false,
            Policy::Append => true,
            Policy::Replace => !loaded.contains_key(&library.name),
        };
        let kept = || present.libraries.values().filter(|library| kept(library));
        for library in loaded.values() {
            if policy == Policy::Append && present.libraries.contains_key(&library.name) {
                return Err(failure(format!("Library {} already exists", library.name)));
            }
        }
        for function in loaded.values().flat_map(|library| &library.functions) {
            let other = present.find(function.name.as_bytes()).map(|(other, _)| other);
            if other.is_some_and(|other| kept().any(|kept| kept.name == other.name)) {
                return Err(failure(format!("Function {} already exists", function.name)));
            }
        }
        let count = kept().count() + loaded.len();
        let bytes = kept().map(|library| library.text.len()).sum::<usize>();
        let bytes = bytes + loaded.values().map(|library| library.text.len()).sum::<usize>();
        check_limits(count, bytes)?;
        let removed: Vec<[&[u8]; 1]> = match policy {
            Policy::Flush => {
                let removed = present.libraries.keys().filter(|name| !loaded.contains_key(*name));
                removed.map(|name| [name.as_bytes()]).collect()
            }
            Policy::Append | Policy::Replace => Vec::new(),
        };
        let set: Vec<[&[u8]; 2]> =
            loaded.values().map(|library| [library.name.as_bytes(), &library.text]).collect();
        let removed = removed.iter().map(|args| Change { command: DELETE, args });
        let set = set.iter().map(|args| Change { command: SET, args });
        self.change_libraries(call, keys, &removed.chain(set).collect::<Vec<_>>());
        reply.ok();
        Ok(())
    }

    /// Loads the libraries of a payload, without a change.
    fn libraries_of(&self, content: &[u8]) -> Result<BTreeMap<String, Library>, CommandError> {
        let ends_at = self.end_of(RESTORE_TIME);
        let mut reader = Reader::new(content);
        let mut libraries = BTreeMap::new();
        let mut functions = HashSet::new();
        let mut bytes = 0;
        while !reader.is_empty() {
            let text = rdb::next_library(&mut reader).map_err(|reason| failure(reason.into()))?;
            bytes += text.len();
            check_limits(libraries.len() + 1, bytes)?;
            let name = LibraryHead::of(&text).map_err(failure)?.name;
            if libraries.contains_key(&name) {
                return Err(failure(format!("Library '{name}' already exists")));
            }
            let library = self.load_library(&text, ends_at)?;
            for function in &library.functions {
                if !functions.insert(function.name.to_ascii_lowercase()) {
                    return Err(failure(format!("Function {} already exists", function.name)));
                }
            }
            libraries.insert(name, library);
        }
        Ok(libraries)
    }
}

fn check_limits(count: usize, bytes: usize) -> Result<(), CommandError> {
    if count <= MAX_LIBRARIES && bytes <= MAX_LIBRARY_BYTES {
        return Ok(());
    }
    Err(failure(format!(
        "{count} libraries would have {bytes} bytes, and the limits are {MAX_LIBRARIES} and \
         {MAX_LIBRARY_BYTES}"
    )))
}
