//! Weak observers of a circuit's end. Takes no memory if no feature uses them.

#[cfg(any(feature = "stream", feature = "metrics", feature = "opentelemetry"))]
pub(crate) use with::{Follower, Followers};

#[cfg(not(any(feature = "stream", feature = "metrics", feature = "opentelemetry")))]
pub(crate) use without::Followers;

#[cfg(any(feature = "stream", feature = "metrics", feature = "opentelemetry"))]
mod with {
    use std::sync::{Arc, Mutex, OnceLock, Weak};

    use crate::sync::unpoisoned;

    /// An observer of a circuit's end.
    pub(crate) trait Follower: Send + Sync {
        /// The circuit has ended: it will never run a receptor again.
        fn ended(&self) {}

        /// The last reference to the circuit was dropped. Its memory is freed when this returns.
        fn gone(&self) {}
    }

    /// Small while empty, because most circuits have no followers.
    #[derive(Default)]
    pub(crate) struct Followers(OnceLock<Box<List>>);

    type List = Mutex<Vec<Weak<dyn Follower>>>;

    impl Followers {
        pub(crate) fn add(&self, follower: Weak<dyn Follower>) {
            let mut all = unpoisoned(self.0.get_or_init(Box::default).lock());
            if all.len() == all.capacity() {
                let looked_at = all.len();
                all.retain(|follower| follower.strong_count() > 0);
                // The next scan happens after half as many additions as were scanned now.
                all.reserve(looked_at / 2 + 1);
            }
            all.push(follower);
        }

        pub(crate) fn ended(&self) {
            self.all().iter().for_each(|follower| follower.ended());
        }

        pub(crate) fn gone(&self) {
            self.all().iter().for_each(|follower| follower.gone());
        }

        /// The followers are called without the lock, because they may drop others.
        fn all(&self) -> Vec<Arc<dyn Follower>> {
            let Some(all) = self.0.get() else { return Vec::new() };
            let all = unpoisoned(all.lock());
            all.iter().filter_map(Weak::upgrade).collect()
        }
    }

    #[cfg(all(test, not(loom)))]
    mod tests {
        use std::sync::atomic::{AtomicU32, Ordering};

        use super::*;

        #[derive(Default)]
        struct Counting(AtomicU32);

        impl Follower for Counting {
            fn ended(&self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }

        #[test]
        fn dropped_followers_take_no_memory_and_all_other_followers_are_notified() {
            let followers = Followers::default();
            let mut stay = Vec::new();
            for number in 0..10_000 {
                let follower = Arc::new(Counting::default());
                let weak: Weak<Counting> = Arc::downgrade(&follower);
                followers.add(weak);
                if number % 1000 == 0 {
                    stay.push(follower);
                }
            }
            let all = followers.0.get().expect("some were added");
            assert!((10..100).contains(&unpoisoned(all.lock()).capacity()));
            followers.ended();
            assert!(stay.iter().all(|follower| follower.0.load(Ordering::Relaxed) == 1));
        }
    }
}

#[cfg(not(any(feature = "stream", feature = "metrics", feature = "opentelemetry")))]
mod without {
    #[derive(Default)]
    pub(crate) struct Followers(());

    #[allow(clippy::unused_self, reason = "the interface of the followers that there might be")]
    impl Followers {
        #[inline]
        pub(crate) fn ended(&self) {}

        #[inline]
        pub(crate) fn gone(&self) {}
    }
}
