//! Allocations of counters. A target of its own: the allocator counts for all threads of the
//! process, so another test beside this one would be counted too.

use clap::Parser;
use std::alloc::System;
use tidemark_lab::allocations::Counting;
use tidemark_lab::counter::{CounterOptions, run};
use tidemark_lab::report::Report;
use tidemark_lab::scenario::{Caller, Console};

#[global_allocator]
static ALLOCATOR: Counting<System> = Counting::new(System);

#[derive(Parser)]
struct Program {
    #[command(flatten)]
    options: CounterOptions,
}

#[test]
fn an_operation_asks_for_no_memory_and_a_key_for_little() {
    for variant in ["vsa", "quota", "exact"] {
        let flags = ["--ops=400000", "--goroutines=2", "--keys=16", "--threshold=10000", "--json"];
        let options = Program::parse_from([&["counter", "--variant", variant][..], &flags].concat()).options;
        let (mut out, mut notes) = (Vec::new(), std::io::sink());
        let mut console = Console::new(&mut out, &mut notes, Caller { arguments: Vec::new() });
        assert!(run(&options, &|_| None, &mut console).unwrap().has_passed());
        let report: Report = serde_json::from_slice(&out).unwrap();
        let value = |name| &report.figures.iter().find(|figure| figure.name == name).unwrap().value;
        // Workers and commits need some hundred allocations.
        let (allocations, operations) = (value("allocations").as_u64(), value("operations").as_u64());
        assert!(
            allocations > Some(0) && allocations < Some(operations.unwrap() / 100),
            "{variant}: {report:?}"
        );
        // A cold counter's 40 bytes, the time of its first move, its name again, and its entry in a
        // hash table.
        let bytes = value("memory_per_key").as_f64().unwrap();
        assert!(bytes > 40.0 && bytes < 200.0, "{variant}: {report:?}");
    }
}
