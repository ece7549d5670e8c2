import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;

/** What the programs share. */
final class Job {
    static final int PORT = Integer.parseInt(System.getenv("PROGRAM_PORT"));
    static final String URL = "redis://127.0.0.1:" + PORT;
    private static final Path REQUEST = Path.of(System.getenv("PROGRAM_FOLDER"), "kill");
    static final long PATIENCE_SECONDS = Long.parseLong(System.getenv("PROGRAM_PATIENCE"));

    interface Condition {
        boolean holds() throws Exception;
    }

    /** Has the server killed with SIGKILL and restarted on its data. */
    static void killServer() throws Exception {
        Files.createFile(REQUEST);
        waitFor("the server to be restarted", () -> !Files.exists(REQUEST));
    }

    static void waitFor(String what, Condition condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(PATIENCE_SECONDS);
        while (!condition.holds()) {
            check(System.nanoTime() < deadline, "waited too long for " + what);
            Thread.sleep(10);
        }
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    /** Runs it in so many threads. Returns what each returned. */
    static <T> List<T> inThreads(int threads, Callable<T> work) throws Exception {
        ExecutorService executor = Executors.newFixedThreadPool(threads);
        List<Future<T>> running = new ArrayList<>();
        for (int thread = 0; thread < threads; thread++) {
            running.add(executor.submit(work));
        }
        List<T> results = new ArrayList<>();
        for (Future<T> future : running) {
            results.add(future.get(PATIENCE_SECONDS, TimeUnit.SECONDS));
        }
        executor.shutdown();
        return results;
    }
}
