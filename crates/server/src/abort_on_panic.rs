//! A panic of any thread ends the process.

use std::io::{self, Write as _};
use std::time::Duration;

/// How long the report of a panic may take where standard error is a pipe whose reader has stopped.
const REPORT_PATIENCE: Duration = Duration::from_secs(5);

/// Makes a panic of any thread end the process by `SIGABRT`, after standard error has the thread's
/// name and the panic's text.
///
/// A panic means that an invariant is broken. Without this, a thread pool or an asynchronous
/// runtime may catch it and go on, or one thread is missing: the server would half work. A process
/// that has ended can be started again, and what it has acknowledged is in the log. Programs that
/// embed [`crate::Server`] choose for themselves.
pub fn abort_on_panic() {
    // It writes `thread 'NAME' panicked at FILE:LINE:COLUMN:`, the text, and a backtrace if
    // RUST_BACKTRACE asks for one.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // If there can be no further thread, the report may take as long as it likes.
        let _ = std::thread::Builder::new().spawn(|| {
            std::thread::sleep(REPORT_PATIENCE);
            std::process::abort();
        });
        report(panic);
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        // Standard error may be closed.
        let _ = writeln!(
            io::stderr(),
            "fatal: thread {name} has panicked, so the process aborts: this is a defect of Tidemark, please report the \
             lines above"
        );
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;

    /// Says to the child process how its thread panics.
    const HOW: &str = "TIDEMARK_TEST_PANIC";
    const SIGABRT: i32 = 6;

    fn panic_in_a_thread(how: &str) {
        let how = how.to_owned();
        let thread = std::thread::Builder::new().name(format!("tidemark-{how}")).spawn(move || {
            let text = format!("{how} met 3 apples");
            let defect = move || panic!("{text}");
            if how == "task" {
                // The runtime catches what a task panics with.
                let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                let _ = runtime.block_on(async { tokio::spawn(async move { defect() }).await });
            } else if how == "caught" {
                let _ = std::panic::catch_unwind(defect);
            } else {
                defect();
            }
        });
        let _ = thread.expect("a thread").join();
    }

    #[test]
    fn a_panic_of_any_thread_ends_the_process_and_says_which() {
        if let Ok(how) = std::env::var(HOW) {
            abort_on_panic();
            panic_in_a_thread(&how);
            std::process::exit(0);
        }
        let name = "abort_on_panic::tests::a_panic_of_any_thread_ends_the_process_and_says_which";
        for how in ["worker-0", "task", "caught"] {
            let mut child = Command::new(std::env::current_exe().expect("this test's binary"));
            child.args(["--exact", name, "--nocapture", "--test-threads", "1"]).env(HOW, how);
            let ended = child.output().expect("a child process");
            let said = String::from_utf8_lossy(&ended.stderr);
            assert_eq!(ended.status.signal(), Some(SIGABRT), "{how}: {said}");
            assert!(said.contains(&format!("thread tidemark-{how} has panicked")), "{said}");
            assert!(said.contains(&format!("{how} met 3 apples")), "{said}");
        }
    }
}
