//! Statements of the repository about itself: links and file names in documents lead to files, the
//! map is short, crates depend downwards, directories keep to their size, unsafe code lies where it
//! is justified, and dependencies have permissive licences.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest size of `ARCHITECTURE.md`. Bytes.
const MAP_BYTES: usize = 12 * 1024;

/// Most source files in one directory.
const FOLDER_FILES: usize = 28;

/// Directories with a series of similar files, as many as the original has suites.
const SERIES: [&str; 1] = ["crates/lab/src/circuit/suites"];

pub(crate) fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("the repository's folder")
}

/// Returns the files below a directory with this extension, without built or downloaded ones.
pub(crate) fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() {
                if !name.starts_with('.')
                    && !["target", "node_modules", "bin", "obj"].contains(&name.as_str())
                {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|own| own == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

pub(crate) fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Returns the pages for readers.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let at_root =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name));
    let mut pages = files(&root.join("docs"), "md");
    pages.extend(at_root);
    // The text about a suite is part of docs/compatibility.md, so its links start there.
    pages.extend(files(&root.join("clients"), "md").into_iter().filter(|path| !path.ends_with("about.md")));
    pages
}

/// Returns the targets of links, between `](` and `)`, outside fenced blocks.
fn links(text: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        }
        if is_fenced {
            continue;
        }
        for rest in line.split("](").skip(1) {
            found.extend(rest.split_once(')').map(|(link, _)| link.to_owned()));
        }
    }
    found
}

#[test]
fn links_in_documents_lead_to_files() {
    let mut broken = Vec::new();
    for page in pages() {
        let folder = page.parent().expect("a folder");
        for link in links(&read(&page)) {
            let path = link.split('#').next().expect("a first part");
            let is_elsewhere = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
            if !is_elsewhere && !folder.join(path).exists() {
                broken.push(format!("{}: {link}", page.display()));
            }
        }
    }
    assert!(broken.is_empty(), "these links lead nowhere:\n{}", broken.join("\n"));
}

/// Checks names such as `watch/emission.rs` in documents about the structure, also in drawings.
#[test]
fn names_of_source_files_in_documents_are_those_of_files() {
    let root = root();
    let sources: Vec<String> =
        files(&root.join("crates"), "rs").iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let mut missing = Vec::new();
    let mut pages = files(&root.join("docs/decisions"), "md");
    pages.extend(["ARCHITECTURE.md", "CONTRIBUTING.md", "docs/reliability.md"].map(|name| root.join(name)));
    for page in pages {
        let text = read(&page);
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_/.-".contains(letter);
        for word in text.split(|letter| !is_part(letter)) {
            let is_name =
                word.strip_suffix(".rs").is_some_and(|name| !name.is_empty() && !name.starts_with('.'));
            let ending = format!("/{}", word.trim_start_matches("../"));
            if is_name && word != "folder/mod.rs" && !sources.iter().any(|source| source.ends_with(&ending)) {
                // `log/append.rs` and `engine command/pools/drawing.rs` name a crate without its
                // `src`.
                let in_crate = word.split_once('/').map(|(name, rest)| format!("/crates/{name}/src/{rest}"));
                if !in_crate.is_some_and(|ending| sources.iter().any(|source| source.ends_with(&ending))) {
                    missing.push(format!("{}: {word}", page.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "there are no such files:\n{}", missing.join("\n"));
}

#[test]
fn the_map_is_short() {
    let bytes = read(&root().join("ARCHITECTURE.md")).len();
    assert!(bytes <= MAP_BYTES, "ARCHITECTURE.md has {bytes} bytes, and may have {MAP_BYTES}");
}

/// The crates in order: each may use only those before it.
const CRATES: [&str; 17] = [
    "fault", "barrier", "circuit", "counter", "pool", "series", "tables", "script", "log", "cluster",
    "engine", "changes", "sinks", "stores", "server", "lab", "tidemark",
];

/// Crates that depend neither on each other nor on the rest of the product.
const INDEPENDENT: [&str; 7] = ["circuit", "counter", "pool", "series", "tables", "script", "log"];

#[test]
fn crates_use_only_those_above_them_in_the_map() {
    for (place, name) in CRATES.iter().enumerate() {
        let manifest = read(&root().join(format!("crates/{name}/Cargo.toml")));
        let manifest: toml::Table = manifest.parse().expect("a manifest");
        let dependencies = manifest.get("dependencies").and_then(toml::Value::as_table);
        for used in dependencies.into_iter().flat_map(toml::Table::keys) {
            let Some(used) = used.strip_prefix("tidemark-") else { continue };
            let at = CRATES.iter().position(|name| *name == used);
            assert!(at.is_some_and(|at| at < place), "{name} uses {used}, which is not above it");
            if INDEPENDENT.contains(name) {
                assert!(!INDEPENDENT.contains(&used), "{name} uses {used}, and they are to be independent");
            }
        }
    }
}

#[test]
fn no_folder_is_a_wall_of_files_and_modules_have_one_style() {
    let root = root();
    let mut folders = std::collections::BTreeMap::<PathBuf, usize>::new();
    let mut faults = Vec::new();
    for source in files(&root.join("crates"), "rs") {
        if !source.to_string_lossy().contains("/src/") {
            continue;
        }
        *folders.entry(source.parent().expect("a folder").to_owned()).or_default() += 1;
        if source.with_extension("").is_dir() {
            faults.push(format!("{} stands beside its folder: make it mod.rs there", source.display()));
        }
    }
    for (folder, count) in folders {
        if count > FOLDER_FILES && !SERIES.iter().any(|series| folder.ends_with(series)) {
            faults.push(format!("{} has {count} files, and may have {FOLDER_FILES}", folder.display()));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The manifest decides whether a crate may use unsafe code; each unsafe block must say why it is
/// sound.
#[test]
fn unsafe_blocks_say_why_they_are_sound() {
    let mut silent = BTreeSet::new();
    for source in files(&root().join("crates"), "rs") {
        let text = read(&source);
        let lines: Vec<&str> = text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let code = line.split("//").next().expect("a first part");
            if code.contains('"') || !(code.contains("unsafe {") || code.contains("unsafe impl")) {
                continue;
            }
            // The reason is above the statement, which may span some lines, or, for a whole
            // function, above the function.
            let above = lines[number.saturating_sub(12)..=number].join("\n");
            if !above.contains("SAFETY") {
                silent.insert(format!("{}:{}", source.display(), number + 1));
            }
        }
    }
    assert!(
        silent.is_empty(),
        "no SAFETY comment above:\n{}",
        silent.into_iter().collect::<Vec<_>>().join("\n")
    );
}

/// Licences of dependencies, as [SPDX](https://spdx.org/licenses) names them: permissive ones, which
/// ask for their notice at most. MPL-2.0 and other licences that bind changed files need a decision.
const LICENCES: [&str; 11] = [
    "0BSD",
    "Apache-2.0",
    // Boost's licence, which asks for no notice in binaries: that of `xxhash-rust`.
    "BSL-1.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "CC0-1.0",
    "ISC",
    "MIT",
    // That of Unicode's tables.
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Splits an expression at a word outside parentheses.
fn split<'e>(expression: &'e str, word: &str) -> Vec<&'e str> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for (at, _) in expression.match_indices(word) {
        let before = &expression[..at];
        if before.matches('(').count() == before.matches(')').count() {
            parts.push(&expression[start..at]);
            start = at + word.len();
        }
    }
    parts.push(&expression[start..]);
    parts
}

/// Whether an SPDX expression can be satisfied by [`LICENCES`]. `AND` binds more tightly than `OR`.
fn is_permissive(expression: &str) -> bool {
    let expression = expression.trim();
    match (split(expression, " OR ").as_slice(), split(expression, " AND ").as_slice()) {
        ([_], [_]) => match expression.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')) {
            Some(inner) => is_permissive(inner),
            None => LICENCES.contains(&expression),
        },
        ([_], all) => all.iter().all(|part| is_permissive(part)),
        (any, _) => any.iter().any(|part| is_permissive(part)),
    }
}

#[test]
fn expressions_of_licences_are_evaluated_by_their_words() {
    for (expression, expected) in [
        ("MIT", true),
        ("GPL-3.0-only", false),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("(MIT OR GPL-3.0-only) AND Unicode-3.0", true),
        ("MIT OR GPL-3.0-only AND Unicode-3.0", true),
        ("GPL-3.0-only OR (MIT AND MPL-2.0)", false),
        ("Apache-2.0 WITH LLVM-exception", false),
        ("", false),
    ] {
        assert_eq!(is_permissive(expression), expected, "{expression}");
    }
}

/// Asks cargo for every dependency on this platform, with every feature.
#[test]
fn dependencies_have_permissive_licences() {
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).args(arguments).current_dir(root()).output().expect("it starts");
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let version = run("rustc", &["-vV"]);
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("the platform");
    // Without the platform, cargo would need the packages of all platforms.
    let arguments = ["metadata", "--locked", "--offline", "--format-version", "1", "--all-features"];
    let metadata = run(env!("CARGO"), &[&arguments[..], &["--filter-platform", host]].concat());
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let refused: Vec<String> = packages
        .iter()
        .map(|package| {
            let text = |name: &str| package[name].as_str().unwrap_or("none").to_owned();
            (text("name"), text("version"), text("license"))
        })
        // An old form of `OR`.
        .filter(|(.., licence)| !is_permissive(&licence.replace(" / ", "/").replace('/', " OR ")))
        .map(|(name, version, licence)| format!("{name} {version}: {licence}"))
        .collect();
    assert!(packages.len() > 100, "cargo has listed {} packages only", packages.len());
    assert!(refused.is_empty(), "licences that are not on the list:\n{}", refused.join("\n"));
}
