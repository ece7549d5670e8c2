//! The walk of `docs/pools.md`, from catalogue to audit, run as it stands there.

use std::process::{Command, Stdio};

const BOOK: &str = include_str!("../../../../docs/pools.md");
const HEADING: &str = "## A campaign from catalogue to audit\n";

/// The script of the section: its blocks of `sh`, one behind the other.
fn script() -> String {
    let section = BOOK.split(HEADING).nth(1).expect("the section").split("\n## ").next().expect("its text");
    let blocks = section.split("```sh\n").skip(1).map(|block| block.split("```").next().expect("its end"));
    blocks.collect()
}

#[test]
fn the_walk_of_the_book_works() {
    let directory = tempfile::tempdir().expect("a directory");
    let port = crate::support::free_port();
    let script = script()
        .replace("tidemark serve ", &format!("tidemark serve --port {port} "))
        .replace("tidemark cli ", &format!("tidemark cli -p {port} "))
        .replace("tidemark top pools ", &format!("tidemark top pools -p {port} "));
    assert!(script.matches("tidemark ").count() >= 12, "{script}");
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_tidemark"));
    let path = format!(
        "{}:{}",
        program.parent().expect("a directory").display(),
        std::env::var("PATH").unwrap_or_default()
    );
    // Whatever fails ends it, and the server with it.
    let script = format!("trap 'kill $! 2> /dev/null || true' EXIT\nset -eu\n{script}\nwait\n");
    let output = Command::new("sh")
        .args(["-c", &script])
        .current_dir(directory.path())
        .env("PATH", path)
        .env_remove("TIDEMARK_DIR")
        .stdin(Stdio::null())
        .output()
        .expect("sh is there");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("good: a catalogue of 3 items"), "{said}");
    assert_eq!(
        said.matches("501 draws made again from the secret of 1 epoch (numbers 0 to 500)").count(),
        2,
        "{said}"
    );
    assert!(said.contains("1 pool; 501 draws"), "{said}");
}
