//! `ScopeOps`: scopes, and what they close.

use crate::micro::benchmark::{Benchmark, Work, each};
use std::hint::black_box;
use tidemark_circuit::{Circuit, Fault, Scope, name};

pub(super) fn suite() -> Vec<Benchmark> {
    let mut all = Vec::new();
    for (name, measures, operation) in scopes() {
        all.extend(Benchmark::with_batch(&format!("ScopeOps.{name}"), measures, move |_| {
            repeated(operation)
        }));
    }
    for (name, measures, operation) in with_circuits().into_iter().chain(within()) {
        all.push(Benchmark::new(format!("ScopeOps.{name}"), measures, move |_| repeated(operation)));
    }
    all
}

/// The life of a scope.
type Operation = fn() -> Result<(), Fault>;

/// A row's name, what it measures, and the operation.
type Row = (&'static str, &'static str, Operation);

fn scopes() -> [Row; 10] {
    [
        ("scope_closure", "making a scope and a circuit, using it once in a closure that closes it", || {
            let (scope, circuit) = (Scope::new(), Circuit::new());
            black_box(scope.closure(&circuit)?.consume(|_| ()));
            scope.close();
            Ok(())
        }),
        ("scope_create_and_close", "making a scope and closing it", || {
            black_box(Scope::new()).close();
            Ok(())
        }),
        ("scope_create_named", "making a scope with a name and closing it", || {
            black_box(Scope::named(name!("bench"))).close();
            Ok(())
        }),
        ("scope_close_idempotent", "making a scope and closing it three times", || {
            let scope = black_box(Scope::new());
            (0..3).for_each(|_| scope.close());
            Ok(())
        }),
        ("scope_child_anonymous", "making a scope and one in it, closing both", || {
            let parent = Scope::new();
            parent.scope()?.close();
            parent.close();
            Ok(())
        }),
        ("scope_child_named", "making a scope and one with a name in it, closing both", || {
            let parent = Scope::new();
            parent.scope_named(name!("bench"))?.close();
            parent.close();
            Ok(())
        }),
        (
            "scope_hierarchy",
            "making three scopes, each in the one before, closing them from the inside",
            || {
                let root = Scope::new();
                let middle = root.scope()?;
                middle.scope()?.close();
                middle.close();
                root.close();
                Ok(())
            },
        ),
        ("scope_parent_closes_children", "making a scope and three in it, closing the outer one", || {
            let parent = Scope::new();
            let children = [parent.scope()?, parent.scope()?, parent.scope()?];
            parent.close();
            drop(children);
            Ok(())
        }),
        ("scope_register_single", "making a scope and a circuit, which is closed with it", || {
            closed_with(&Scope::new(), 1)
        }),
        ("scope_register_multiple", "making a scope and five circuits, which are closed with it", || {
            closed_with(&Scope::new(), 5)
        }),
    ]
}

fn with_circuits() -> [Row; 2] {
    [
        ("scope_with_resources", "making a scope and two circuits, which are closed with it", || {
            closed_with(&Scope::new(), 2)
        }),
        (
            "scope_complex",
            "making a scope with two in it and a circuit in each, closing the outer one",
            || {
                let root = Scope::new();
                let (first, second) = (root.scope_named(name!("bench"))?, root.scope()?);
                for scope in [&root, &first, &second] {
                    scope.register(Circuit::new())?;
                }
                root.close();
                Ok(())
            },
        ),
    ]
}

/// Rows that the newer suite runs within an existing scope; here each creates the scope too.
fn within() -> [Row; 5] {
    [
        ("scope_create_close_leaf", "making a scope and one in it, closing that", || {
            let root = Scope::new();
            root.scope_named(name!("scope"))?.close();
            Ok(())
        }),
        (
            "scope_create_close_children",
            "making a scope, one in it and four in that, closing the second",
            || {
                let root = Scope::new();
                let scope = root.scope_named(name!("scope"))?;
                let child = || scope.scope_named(name!("scope"));
                // A dropped scope is closed: all are kept until the outer one is closed.
                let children = [child()?, child()?, child()?, child()?];
                scope.close();
                drop(children);
                Ok(())
            },
        ),
        (
            "scope_create_close_nested",
            "making a scope and nine in it, each in the one before, closing the second",
            || {
                let root = Scope::new();
                let scope = root.scope_named(name!("scope"))?;
                let mut chain: [Option<Scope>; 8] = Default::default();
                for depth in 0..chain.len() {
                    let above = chain[..depth].last().and_then(Option::as_ref).unwrap_or(&scope);
                    chain[depth] = Some(above.scope_named(name!("scope"))?);
                }
                scope.close();
                drop(chain);
                Ok(())
            },
        ),
        (
            "scope_create_close_observed",
            "making a scope and one in it, asking that for its subject, closing it",
            || {
                let root = Scope::new();
                let scope = root.scope_named(name!("scope"))?;
                black_box(scope.subject());
                scope.close();
                Ok(())
            },
        ),
        ("scope_create_close_twice", "making a scope and one in it, closing that twice", || {
            let root = Scope::new();
            let scope = root.scope_named(name!("scope"))?;
            scope.close();
            scope.close();
            Ok(())
        }),
    ]
}

fn closed_with(scope: &Scope, circuits: usize) -> Result<(), Fault> {
    for _ in 0..circuits {
        scope.register(Circuit::new())?;
    }
    scope.close();
    Ok(())
}

fn repeated(operation: Operation) -> anyhow::Result<Work> {
    each(move |_| operation())
}
