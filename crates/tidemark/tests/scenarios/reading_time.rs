//! The log and the server read time only through their `Clock`, so that tests can move it.

use crate::circles::is_test;
use crate::tidy::{files, read, root};
use std::collections::BTreeMap;
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ImplItemFn, Item, Macro};

/// Sources that must not read the system's clocks.
const THROUGH_THE_CLOCK: [&str; 2] = ["crates/log/src", "crates/server/src"];

/// Files that may, each with the reason.
const EXCEPTIONS: [(&str, &str); 4] = [
    ("crates/log/src/clock.rs", "it is the clock"),
    ("crates/server/src/http/changes.rs", "a deadline of tokio's timer is an instant of tokio's clock"),
    ("crates/server/src/http/listener.rs", "a deadline of tokio's timer is an instant of tokio's clock"),
    ("crates/server/src/http/socket.rs", "a deadline of tokio's timer is an instant of tokio's clock"),
];

/// Ways to read the system's clocks, without spaces.
const READINGS: [&str; 3] = ["Instant::now", "SystemTime::now", ".elapsed()"];

/// Readings of the system's clocks in the code of a file, without its tests.
#[derive(Default)]
struct Readings(Vec<&'static str>);

impl Readings {
    fn of(text: &str) -> Vec<&'static str> {
        let mut readings = Readings::default();
        let file = syn::parse_file(text).expect("a source");
        if !is_test(&file.attrs) {
            readings.visit_file(&file);
        }
        readings.0
    }

    fn note(&mut self, code: &str) {
        self.0.extend(READINGS.iter().filter(|reading| code.contains(**reading)));
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        _ => &[],
    }
}

impl<'ast> Visit<'ast> for Readings {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_test(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        match expr {
            Expr::Path(path) => {
                let names: Vec<String> =
                    path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                self.note(&names.join("::"));
            }
            Expr::MethodCall(call) if call.method == "elapsed" && call.args.is_empty() => {
                self.0.push(".elapsed()");
            }
            _ => {}
        }
        visit::visit_expr(self, expr);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        // The arguments of a macro are not parsed.
        self.note(&called.tokens.to_string().replace(char::is_whitespace, ""));
    }
}

/// Returns what the sources below a directory read, by file. `tests.rs` and directories `tests`
/// have only tests.
fn readings(folder: &Path) -> BTreeMap<String, Vec<&'static str>> {
    let sources = files(folder, "rs").into_iter();
    sources
        .filter(|path| !path.ends_with("tests.rs") && !path.iter().any(|part| part == "tests"))
        .map(|path| (path.to_string_lossy().into_owned(), Readings::of(&read(&path))))
        .filter(|(_, found)| !found.is_empty())
        .collect()
}

#[test]
fn the_log_and_the_server_read_time_through_their_clock() {
    let root = root();
    let mut found = BTreeMap::new();
    for folder in THROUGH_THE_CLOCK {
        found.extend(readings(&root.join(folder)));
    }
    for (file, reason) in EXCEPTIONS {
        let file = root.join(file).to_string_lossy().into_owned();
        assert!(found.remove(&file).is_some(), "{file} reads no time, and was allowed to because {reason}");
    }
    assert!(found.is_empty(), "use `Clock` of tidemark-log, which tests move, instead of: {found:#?}");
}

#[test]
fn a_reading_of_the_systems_clocks_is_found() {
    for (text, reading) in [
        ("fn f() { let at = std::time::Instant::now(); }", "Instant::now"),
        ("fn f(at: Option<Instant>) { at.unwrap_or_else(Instant::now); }", "Instant::now"),
        ("fn f() { g(SystemTime::now()) }", "SystemTime::now"),
        ("impl A { fn f(&self) -> Duration { self.began.elapsed() } }", ".elapsed()"),
        ("fn f() { println!(\"{}\", began.elapsed().as_secs()) }", ".elapsed()"),
    ] {
        assert_eq!(Readings::of(text), [reading], "{text}");
    }
    for text in [
        "fn f(clock: &Clock) { clock.now(); clock.elapsed(began); }",
        "#[cfg(test)] mod tests { fn f() { Instant::now(); } }",
        "#[cfg(test)] fn f() { Instant::now(); }",
        "impl A { #[cfg(test)] fn f() { Instant::now(); } }",
    ] {
        assert_eq!(Readings::of(text), <[&str; 0]>::default(), "{text}");
    }
}
