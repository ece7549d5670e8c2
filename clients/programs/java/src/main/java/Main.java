/**
 * Programs that use Redis from Java, one by its name: each does its job, checks it, and ends with exit status 0 if it was done as
 * promised.
 */
public final class Main {
    public static void main(String[] arguments) {
        try {
            switch (arguments[0]) {
                case "redisson" -> RedissonObjects.run();
                case "spring-data-streams" -> SpringDataStreams.run();
                case "bucket4j" -> Bucket4jLimits.run();
                default -> throw new IllegalArgumentException(arguments[0]);
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        // Threads of clients may still be there.
        System.exit(0);
    }
}
