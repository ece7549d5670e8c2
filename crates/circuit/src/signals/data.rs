//! Vocabularies of what keeps data and passes it on.

vocabulary! {
    /// What happens to a queue.
    queues Queue {
        /// Something was put in.
        Enqueue enqueue Operation => Stable;
        /// Something was taken out.
        Dequeue dequeue Operation;
        /// It was full.
        Overflow overflow Outcome => Degraded;
        /// It was empty.
        Underflow underflow Outcome;
    }
}

vocabulary! {
    /// What happens to a stack.
    stacks Stack {
        /// Something was put on top.
        Push push Operation => Stable;
        /// Something was taken from the top.
        Pop pop Operation;
        /// It was full.
        Overflow overflow Outcome => Degraded;
        /// It was empty.
        Underflow underflow Outcome;
    }
}

vocabulary! {
    /// What happens to a cache.
    caches Cache {
        /// An entry was looked for.
        Lookup lookup Operation;
        /// It was there.
        Hit hit Outcome => Stable;
        /// It was not there.
        Miss miss Outcome => Degraded;
        /// An entry was added or replaced.
        Store store Operation;
        /// An entry had to make room.
        Evict evict Outcome;
        /// An entry was too old.
        Expire expire Outcome;
        /// An entry was taken out on purpose.
        Remove remove Operation;
    }
}

vocabulary! {
    /// Stages that data passes.
    pipelines Pipeline {
        /// Data came in.
        Input input Operation;
        /// Data went out.
        Output output Operation => Stable;
        /// Data was changed.
        Transform transform Operation;
        /// Data was left out.
        Filter filter Operation;
        /// Data was put together.
        Aggregate aggregate Operation;
        /// Data was kept for later.
        Buffer buffer Operation;
        /// Who sends was slowed down.
        Backpressure backpressure Operation;
        /// A buffer was full.
        Overflow overflow Outcome => Degraded;
        /// What was done so far is safe.
        Checkpoint checkpoint Operation;
        /// The time of events went on.
        Watermark watermark Operation;
        /// Processing is behind.
        Lag lag Outcome => Degraded;
        /// Data was passed over.
        Skip skip Outcome;
    }
}

vocabulary! {
    /// A message on its way through a broker.
    messages Message {
        /// It was handed in for delivery.
        Publish publish Operation;
        /// It was handed to a receiver.
        Deliver deliver Operation;
        /// The receiver has confirmed it.
        Ack ack Outcome => Stable;
        /// The receiver has refused it, or failed.
        Nack nack Outcome => Degraded;
        /// It was delivered once more.
        Redeliver redeliver Operation;
        /// It was delivered often enough, and set aside.
        Exhaust exhaust Outcome => Defective;
        /// It was too old to be delivered.
        Expire expire Outcome => Degraded;
    }
    ordered false {
        /// As who sends it sees it.
        Producer;
        /// As who keeps it sees it.
        Broker;
        /// As who receives it sees it.
        Consumer;
    }
}
