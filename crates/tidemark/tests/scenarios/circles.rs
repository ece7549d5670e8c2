//! The modules of a crate form no circle: a file uses others in one direction only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, ItemFn, ItemImpl, ItemMacro, ItemMod, ItemUse, UseTree};

/// A module's path in its crate; empty for the crate itself.
type Module = Vec<String>;

/// The one circle that is meant: an entry of the keyspace holds any value, the list of types names
/// all of them, and the fields of a hash are entries themselves.
const MEANT: (&str, [&str; 2]) = ("engine", ["keyspace::entry", "value"]);

/// Paths that a file names, without its tests.
#[derive(Default)]
struct Named {
    /// Paths in code.
    paths: Vec<Vec<String>>,
    /// Paths of `use`, each with whether it is public.
    uses: Vec<(bool, Vec<String>)>,
}

pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string().contains("test"))
    })
}

fn expand(tree: &UseTree, mut path: Vec<String>, into: &mut Vec<Vec<String>>) {
    match tree {
        UseTree::Path(inner) => {
            path.push(inner.ident.to_string());
            expand(&inner.tree, path, into);
        }
        UseTree::Group(group) => group.items.iter().for_each(|item| expand(item, path.clone(), into)),
        UseTree::Name(name) => {
            path.push(name.ident.to_string());
            into.push(path);
        }
        UseTree::Rename(renamed) => {
            path.push(renamed.ident.to_string());
            into.push(path);
        }
        UseTree::Glob(_) => into.push(path),
    }
}

impl<'ast> Visit<'ast> for Named {
    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast ItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_item_fn(self, item);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        if !is_test(&item.attrs) {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        if is_test(&item.attrs) {
            return;
        }
        let mut paths = Vec::new();
        expand(&item.tree, Vec::new(), &mut paths);
        let is_public = !matches!(item.vis, syn::Visibility::Inherited);
        self.uses.extend(paths.into_iter().map(|path| (is_public, path)));
    }

    fn visit_item_macro(&mut self, _: &'ast ItemMacro) {
        // What a macro names is resolved where it is used.
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(super)` uses nothing.
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

/// Returns the modules below a crate's `src`, with what each names.
fn modules(src: &Path) -> BTreeMap<Module, Named> {
    let mut found = BTreeMap::new();
    let mut folders = vec![src.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "tests") {
                    folders.push(path);
                }
                continue;
            }
            let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
            if path.extension().is_none_or(|extension| extension != "rs") || stem == "tests" {
                continue;
            }
            let relative = path.strip_prefix(src).expect("below src").with_extension("");
            let mut module: Module =
                relative.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            if ["mod", "lib", "main"].contains(&stem.as_str()) {
                module.pop();
            }
            let text = fs::read_to_string(&path).expect("a readable source");
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            if is_test(&file.attrs) {
                continue;
            }
            let mut named = Named::default();
            named.visit_file(&file);
            found.insert(module, named);
        }
    }
    found
}

/// The module that a path leads to, and the item there.
fn resolve<'p>(
    path: &'p [String],
    here: &[String],
    modules: &BTreeMap<Module, Named>,
) -> Option<(Module, Option<&'p String>)> {
    let mut rest = path;
    let mut at: Module = match rest.first()?.as_str() {
        "crate" => {
            rest = &rest[1..];
            Vec::new()
        }
        "self" => {
            rest = &rest[1..];
            here.to_vec()
        }
        "super" => {
            let mut at = here.to_vec();
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = &rest[1..];
            }
            at
        }
        _ => here.to_vec(),
    };
    let start = at.len();
    let is_relative = std::ptr::eq(rest, path);
    while let Some(part) = rest.first() {
        at.push(part.clone());
        if !modules.contains_key(&at) {
            at.pop();
            break;
        }
        rest = &rest[1..];
    }
    // A name that is no child of this module is another crate's, or an item that a `use` brought.
    (!is_relative || at.len() > start).then(|| (at, rest.first()))
}

/// Returns which modules each module uses. A re-exported item counts as used where it is declared.
fn arrows(modules: &BTreeMap<Module, Named>) -> BTreeMap<&Module, BTreeSet<Module>> {
    let mut declared = BTreeMap::new();
    for (module, named) in modules {
        for (_, path) in named.uses.iter().filter(|(is_public, _)| *is_public) {
            if let Some((at, Some(item))) = resolve(path, module, modules) {
                declared.insert((module.clone(), item.clone()), at);
            }
        }
    }
    let mut arrows = BTreeMap::<&Module, BTreeSet<Module>>::new();
    for (module, named) in modules {
        let in_code = named.paths.iter().map(|path| (false, path));
        let used = named.uses.iter().map(|(is_public, path)| (*is_public, path)).chain(in_code);
        for (is_public, path) in used {
            let Some((mut at, item)) = resolve(path, module, modules) else { continue };
            // Each step follows one re-export.
            for _ in 0..modules.len() {
                match item.and_then(|item| declared.get(&(at.clone(), item.clone()))) {
                    Some(next) => at.clone_from(next),
                    None => break,
                }
            }
            // A folder's `mod.rs` puts its files together, and they know what it declares.
            let is_own_file = at.len() == module.len() + 1 && at.starts_with(module);
            let is_offer = is_public && at.starts_with(module);
            if at != *module && !is_own_file && !is_offer {
                arrows.entry(module).or_default().insert(at);
            }
        }
    }
    arrows
}

/// Returns the modules that can be reached from one.
fn reached<'a>(from: &'a Module, arrows: &'a BTreeMap<&Module, BTreeSet<Module>>) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut open = vec![from];
    while let Some(module) = open.pop() {
        for next in arrows.get(module).into_iter().flatten() {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "the crate's root".to_owned() } else { module.join("::") }
}

/// Returns the circles of a crate, each by the modules in it.
fn circles(src: &Path) -> BTreeSet<Vec<String>> {
    let modules = modules(src);
    let arrows = arrows(&modules);
    let reach: BTreeMap<_, _> = modules.keys().map(|module| (module, reached(module, &arrows))).collect();
    let in_circles = modules.keys().filter(|module| reach[module].contains(module));
    in_circles
        .map(|module| {
            let same = modules
                .keys()
                .filter(|other| reach[module].contains(other) && reach[other].contains(&module));
            same.map(shown).collect()
        })
        .collect()
}

#[test]
fn modules_form_no_circles() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = Vec::new();
    let mut seen = 0;
    for entry in fs::read_dir(crates).expect("the crates") {
        let path: PathBuf = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !path.join("src").is_dir() {
            continue;
        }
        seen += 1;
        for circle in circles(&path.join("src")) {
            let is_meant = name == MEANT.0
                && circle.iter().all(|module| {
                    MEANT.1.iter().any(|room| module == room || module.starts_with(&format!("{room}::")))
                });
            if !is_meant {
                found.push(format!("{name}: {}", circle.join(", ")));
            }
        }
    }
    assert!(seen > 10, "{seen} crates were found");
    assert!(found.is_empty(), "these modules use each other:\n{}", found.join("\n"));
}

#[test]
fn a_circle_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("a source");
    write("lib.rs", "mod one; mod two; mod three; pub use one::One; fn first() -> one::One { loop {} }");
    write("one.rs", "use crate::two::Two; pub struct One(Two);");
    write("two.rs", "pub struct Two; impl Two { fn one(&self) -> Option<crate::One> { None } }");
    write("three.rs", "use super::one::One; #[cfg(test)] mod tests { use crate::two::Two; }");
    let circle = vec!["one".to_owned(), "two".to_owned()];
    assert_eq!(circles(folder.path()), BTreeSet::from([circle]));
}
