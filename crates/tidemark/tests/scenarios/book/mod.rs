//! Checks that every page of the book is right: its blocks are run from top to bottom, and their
//! output is compared with what they show. The module `page` describes how a page marks what to
//! type, what varies and what is not run.

mod expected;
mod page;
mod reader;
mod screen;

use page::{Kind, Page};
use reader::Reader;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Most blocks that are not run, except measurements; each gives a reason.
const NOT_RUN_MAX: usize = 13;

/// Source files that compile the Rust examples of a page, as documentation tests of a crate.
const COMPILED_BY: &[(&str, &str)] = &[
    ("docs/circuits.md", "crates/circuit/src/lib.rs"),
    ("docs/counters.md", "crates/counter/src/lib.rs"),
    ("docs/pools.md", "crates/stores/src/lib.rs"),
];

/// Returns the pages of the book, as paths from the repository's root.
fn pages() -> Vec<String> {
    let entries = std::fs::read_dir(Path::new(ROOT).join("docs")).expect("docs is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"));
    let pages = names.filter_map(|name| Some(format!("docs/{}.md", name.strip_suffix(".md")?)));
    let mut pages: Vec<String> = pages.chain(["README.md".to_owned()]).collect();
    pages.sort();
    assert!(pages.len() > 15, "these are not all pages: {pages:?}");
    pages
}

fn read(path: &str) -> Page {
    let text = std::fs::read_to_string(PathBuf::from(ROOT).join(path)).expect(path);
    Page::parse(path, &text)
}

/// Runs a page from top to bottom.
fn run(path: &str) {
    let page = read(path);
    let mut reader = Reader::new(&page);
    for block in &page.blocks {
        reader.run(block);
    }
    let (compared, faults) = reader.finish();
    println!("{path}: {compared} answers compared");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
    assert!(compared > 0, "{path} has nothing that can be run");
}

#[test]
fn every_block_is_run_or_says_why_not() {
    let (mut not_run, mut measurements, mut faults) = (Vec::new(), 0, Vec::new());
    for path in pages() {
        let page = read(&path);
        for block in &page.blocks {
            let place = format!("{path}:{}", block.line);
            match &block.kind {
                Kind::NotRun(reason) if reason.starts_with("a measurement") => measurements += 1,
                Kind::NotRun(reason) => not_run.push(format!("{place}: {reason}")),
                Kind::Rust => {
                    let compiled = COMPILED_BY.iter().find(|(of, _)| *of == path);
                    let includes = |source: &str| {
                        let text = std::fs::read_to_string(Path::new(ROOT).join(source)).expect(source);
                        text.contains(&format!("include_str!(\"../../../{path}\")"))
                    };
                    if !compiled.is_some_and(|(_, source)| includes(source)) {
                        faults.push(format!(
                            "{place}: no crate includes the page, so nothing compiles the block"
                        ));
                    }
                    if let Some(hidden) = block.lines.iter().position(|line| line.starts_with("# ")) {
                        let line = block.line + 1 + hidden;
                        faults.push(format!("{path}:{line}: readers see a line that rustdoc alone hides"));
                    }
                }
                Kind::Unknown(info) => {
                    faults.push(format!("{place}: nothing is known about blocks of `{info}`"));
                }
                Kind::Console | Kind::Shell | Kind::File(_) | Kind::Text => {}
            }
        }
        let is_run = |kind: &Kind| matches!(kind, Kind::Console | Kind::Shell);
        let runs = page.blocks.iter().any(|block| is_run(&block.kind));
        if runs != RUN.contains(&path.as_str()) {
            faults.push(format!(
                "{path}: the page {} a test that runs it",
                if runs { "needs" } else { "has no use for" }
            ));
        }
    }
    println!(
        "{measurements} measurements are not run, and {} other blocks:\n{}",
        not_run.len(),
        not_run.join("\n")
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(not_run.len() <= NOT_RUN_MAX, "{} blocks are not run: {not_run:#?}", not_run.len());
}

/// Measurements take long and need a quiet machine, so they are not run; but every flag that a page
/// gives them must exist.
#[test]
fn measurements_are_command_lines_that_are_understood() {
    let (mut looked_at, mut faults) = (0, Vec::new());
    for path in ["docs/benchmarks.md", "docs/performance.md"] {
        for block in read(path).blocks {
            let script = block.lines.join("\n").replace("\\\n", " ");
            for line in script.lines().filter_map(|line| line.strip_prefix("tidemark ")) {
                let line = line.split(" #").next().unwrap_or_default().trim_end().trim_end_matches(" &");
                let output = std::process::Command::new("sh")
                    .args(["-c", &format!("'{}' {line} --help", env!("CARGO_BIN_EXE_tidemark"))])
                    .output()
                    .expect("sh is there");
                looked_at += 1;
                if !output.status.success() {
                    let message = String::from_utf8_lossy(&output.stderr).into_owned();
                    faults.push(format!("{path}:{}: tidemark {line}\n{message}", block.line));
                }
            }
        }
    }
    println!("{looked_at} command lines looked at");
    assert!(faults.is_empty() && looked_at > 20, "{looked_at} looked at\n{}", faults.join("\n"));
}

/// Makes a test for each page that has something to run.
macro_rules! run_pages {
    ($($name:ident: $path:literal,)*) => {
        const RUN: &[&str] = &[$($path),*];
        $(
            #[test]
            fn $name() {
                run($path);
            }
        )*
    };
}

run_pages! {
    the_readme_works: "README.md",
    changes_works: "docs/changes.md",
    cluster_works: "docs/cluster.md",
    client_tracking_works: "docs/client-tracking.md",
    counters_works: "docs/counters.md",
    keyspace_notifications_works: "docs/keyspace-notifications.md",
    limits_works: "docs/limits.md",
    once_works: "docs/once.md",
    pools_works: "docs/pools.md",
    scripts_works: "docs/scripts.md",
    series_works: "docs/series.md",
    streams_works: "docs/streams.md",
    watching_works: "docs/watching.md",
    watching_http_works: "docs/watching-http.md",
}
