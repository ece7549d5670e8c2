//! Processes that give up rights after their start, as servers do: circuits continue to work when
//! the kernel no longer offers barriers.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(miri)))]
#![allow(unsafe_code, reason = "the standard library has no name for these system calls")]

use std::ffi::{c_int, c_ulong};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use tidemark_circuit::{Circuit, RunBy, ThreadPool};

/// A scenario that hangs for longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);

#[repr(C)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    operand: u32,
}

#[repr(C)]
struct Program {
    length: u16,
    instructions: *const Instruction,
}

unsafe extern "C" {
    fn prctl(option: c_int, first: c_ulong, second: c_ulong, third: c_ulong, fourth: c_ulong) -> c_int;
}

/// Makes `membarrier(2)` fail with `EPERM` in this thread and the threads that it starts.
fn give_up_barriers() {
    const NO_NEW_PRIVILEGES: c_int = 38;
    const SECCOMP: c_int = 22;
    const FILTER: c_ulong = 2;
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const MEMBARRIER: u32 = 324;
    const ERROR_EPERM: u32 = 0x0005_0001;
    const ALLOW: u32 = 0x7fff_0000;
    let instruction = |code, if_true, if_false, operand| Instruction { code, if_true, if_false, operand };
    let instructions = [
        instruction(LOAD, 0, 0, 0),
        instruction(JUMP_IF_EQUAL, 0, 1, MEMBARRIER),
        instruction(RETURN, 0, 0, ERROR_EPERM),
        instruction(RETURN, 0, 0, ALLOW),
    ];
    let program = Program { length: 4, instructions: instructions.as_ptr() };
    // SAFETY: the kernel copies the program, whose length is correct.
    unsafe {
        assert_eq!(prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0), 0);
        assert_eq!(prctl(SECCOMP, FILTER, (&raw const program).addr() as c_ulong, 0, 0), 0);
    }
}

/// Waits until each other thread of the process sleeps.
fn wait_until_others_sleep() {
    let own = fs::read_link("/proc/thread-self").expect("Linux");
    let sleeps = |thread: fs::DirEntry| {
        // A thread that has ended meanwhile has no state.
        let Ok(stat) = fs::read_to_string(thread.path().join("stat")) else { return true };
        // The name, in parentheses, may contain anything.
        thread.file_name() == own.file_name().expect("a number")
            || stat.rsplit_once(") ").expect("a name").1.starts_with('S')
    };
    let end = Instant::now() + PATIENCE;
    while !fs::read_dir("/proc/self/task").expect("Linux").all(|thread| sleeps(thread.expect("a thread"))) {
        assert!(Instant::now() < end, "a thread does not sleep");
        thread::yield_now();
    }
}

/// The only test of its binary, because the whole process gives up barriers.
#[test]
fn circuits_go_on_without_barriers() {
    // The first circuit registers the process for barriers.
    let before = Circuit::builder().run_by(RunBy::Thread).build().expect("a thread");
    give_up_barriers();
    let pool = RunBy::Pool(ThreadPool::new(1).expect("a thread"));
    let behind = Circuit::builder().run_by(pool).build().expect("valid");
    let (done, is_done) = mpsc::channel();
    thread::spawn(move || {
        for circuit in [before, behind] {
            let sum = circuit.cell(0_u64).expect("open");
            let slow = circuit.pipe(|()| thread::sleep(Duration::from_millis(20))).expect("open");
            // A caller that waits for this long would use a barrier.
            slow.emit(());
            circuit.settle().expect("outside");
            let mut lane = circuit.lane().expect("open");
            for value in 1..=5 {
                lane.emit(sum.pipe(), value);
                wait_until_others_sleep();
                circuit.settle().expect("outside");
                assert_eq!(sum.get(), value);
            }
        }
        done.send(()).expect("the receiver waits");
    });
    is_done.recv_timeout(PATIENCE).expect("no thread hangs");
}
