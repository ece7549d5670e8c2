//! The simulated runtime, in which the clock of each member has a speed of its own.
//!
//! A task has the speed of the task that spawned it. Instants of members with different speeds are
//! never compared: a member sends none.

use std::cell::Cell;
use std::io;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use openraft::OptionalSend;
use openraft::async_runtime::{AsyncRuntime, Instant};
use openraft_rt_sim::{SimInstant, SimRuntime};

/// Speed of a clock that is right, in millionths of virtual time.
pub(crate) const EVEN: u64 = 1_000_000;
/// Clocks begin here, so that a timeout can be subtracted from any time. Nanoseconds.
const BEGAN: u64 = 86_400 * 1_000_000_000;

thread_local! {
    static SPEED: Cell<u64> = const { Cell::new(EVEN) };
}

/// Runs `run` with the clock of this speed.
pub(crate) fn at_speed<T>(speed: u64, run: impl FnOnce() -> T) -> T {
    struct Restore(u64);
    impl Drop for Restore {
        fn drop(&mut self) {
            SPEED.set(self.0);
        }
    }
    let _restore = Restore(SPEED.replace(speed));
    run()
}

/// A future that is polled with the clock of one speed.
pub(crate) struct AtSpeed<F> {
    speed: u64,
    future: Pin<Box<F>>,
}

impl<F> AtSpeed<F> {
    pub(crate) fn new(speed: u64, future: F) -> Self {
        Self { speed, future: Box::pin(future) }
    }
}

impl<F: Future> Future for AtSpeed<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        at_speed(self.speed, || self.future.as_mut().poll(context))
    }
}

/// A time of one clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SkewedInstant(u64);

impl SkewedInstant {
    /// The zero of all clocks.
    pub(crate) const BEGAN: Self = Self(BEGAN);
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).expect("a simulation takes less than 584 years")
}

/// Returns for how long a clock of the present speed takes to show `duration` more.
fn virtual_time(duration: Duration) -> Duration {
    let scaled = u128::from(nanos(duration)) * u128::from(EVEN);
    Duration::from_nanos(scaled.div_ceil(SPEED.get().into()) as u64)
}

impl Add<Duration> for SkewedInstant {
    type Output = Self;

    fn add(self, by: Duration) -> Self {
        Self(self.0 + nanos(by))
    }
}

impl AddAssign<Duration> for SkewedInstant {
    fn add_assign(&mut self, by: Duration) {
        self.0 += nanos(by);
    }
}

impl Sub<Duration> for SkewedInstant {
    type Output = Self;

    fn sub(self, by: Duration) -> Self {
        Self(self.0 - nanos(by))
    }
}

impl SubAssign<Duration> for SkewedInstant {
    fn sub_assign(&mut self, by: Duration) {
        self.0 -= nanos(by);
    }
}

impl Sub for SkewedInstant {
    type Output = Duration;

    /// Saturates at zero, as that of the standard library.
    fn sub(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Instant for SkewedInstant {
    fn now() -> Self {
        let now = nanos(<SimInstant as Instant>::now().elapsed_since_start());
        let scaled = u128::from(now) * u128::from(SPEED.get()) / u128::from(EVEN);
        Self(BEGAN + scaled as u64)
    }
}

/// Time that work takes which would wait for a disk.
const BLOCKING: Duration = Duration::from_micros(300);

/// Does work that would wait for the disk on another thread.
pub(crate) async fn run_blocking<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> Option<R> {
    SkewedRuntime::sleep(BLOCKING).await;
    Some(work())
}

/// See the [module](self).
pub(crate) struct SkewedRuntime(SimRuntime);

impl SkewedRuntime {
    pub(crate) fn with_seed(seed: u64) -> Self {
        Self(SimRuntime::with_seed(seed))
    }
}

impl std::fmt::Debug for SkewedRuntime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SkewedRuntime")
    }
}

impl AsyncRuntime for SkewedRuntime {
    type JoinError = <SimRuntime as AsyncRuntime>::JoinError;
    type JoinHandle<T: OptionalSend + 'static> = <SimRuntime as AsyncRuntime>::JoinHandle<T>;
    type Sleep = <SimRuntime as AsyncRuntime>::Sleep;
    type Instant = SkewedInstant;
    type TimeoutError = <SimRuntime as AsyncRuntime>::TimeoutError;
    type Timeout<R, T: Future<Output = R> + OptionalSend> = <SimRuntime as AsyncRuntime>::Timeout<R, T>;
    type ThreadLocalRng = <SimRuntime as AsyncRuntime>::ThreadLocalRng;
    type Mpsc = <SimRuntime as AsyncRuntime>::Mpsc;
    type Watch = <SimRuntime as AsyncRuntime>::Watch;
    type Oneshot = <SimRuntime as AsyncRuntime>::Oneshot;
    type Mutex<T: OptionalSend + 'static> = <SimRuntime as AsyncRuntime>::Mutex<T>;

    fn spawn<T>(future: T) -> Self::JoinHandle<T::Output>
    where
        T: Future + OptionalSend + 'static,
        T::Output: OptionalSend + 'static,
    {
        SimRuntime::spawn(AtSpeed::new(SPEED.get(), future))
    }

    fn sleep(duration: Duration) -> Self::Sleep {
        SimRuntime::sleep(virtual_time(duration))
    }

    fn sleep_until(deadline: SkewedInstant) -> Self::Sleep {
        Self::sleep(deadline - SkewedInstant::now())
    }

    fn timeout<R, F: Future<Output = R> + OptionalSend>(
        duration: Duration,
        future: F,
    ) -> Self::Timeout<R, F> {
        SimRuntime::timeout(virtual_time(duration), future)
    }

    fn timeout_at<R, F: Future<Output = R> + OptionalSend>(
        deadline: SkewedInstant,
        future: F,
    ) -> Self::Timeout<R, F> {
        Self::timeout(deadline - SkewedInstant::now(), future)
    }

    fn is_panic(error: &Self::JoinError) -> bool {
        SimRuntime::is_panic(error)
    }

    fn thread_rng() -> Self::ThreadLocalRng {
        SimRuntime::thread_rng()
    }

    fn new(_threads: usize) -> Self {
        Self::with_seed(0)
    }

    fn block_on<F: Future<Output = T>, T>(&mut self, future: F) -> T {
        self.0.block_on(future)
    }

    fn spawn_blocking<F, T>(run: F) -> impl Future<Output = Result<T, io::Error>> + Send
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        SimRuntime::spawn_blocking(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_clock_shows_more_and_its_timers_end_earlier() {
        let measure = async |speed| {
            AtSpeed::new(speed, async {
                let (began, began_really) = (SkewedInstant::now(), <SimInstant as Instant>::now());
                SkewedRuntime::sleep(Duration::from_millis(100)).await;
                let took = <SimInstant as Instant>::now() - began_really;
                (SkewedInstant::now() - began, took)
            })
            .await
        };
        SkewedRuntime::with_seed(1).block_on(async {
            let (shown, took) = measure(2 * EVEN).await;
            assert_eq!((shown, took), (Duration::from_millis(100), Duration::from_millis(50)));
            let (shown, took) = measure(EVEN / 2).await;
            assert_eq!((shown, took), (Duration::from_millis(100), Duration::from_millis(200)));
        });
    }
}
