import java.util.Arrays;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Collectors;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.JedisCluster;
import redis.clients.jedis.JedisSentineled;
import redis.clients.jedis.UnifiedJedis;
import redis.clients.jedis.exceptions.JedisException;

/** Jedis follows the leader of a cluster: see test.py. Arguments: cluster|sentinel PORT,PORT,PORT. */
public class FollowByJedis {
    static UnifiedJedis connect(String mode, Set<HostAndPort> nodes) {
        if (mode.equals("cluster")) {
            return new JedisCluster(nodes);
        }
        var leader = DefaultJedisClientConfig.builder().database(5).build();
        return new JedisSentineled("tidemark", leader, nodes, DefaultJedisClientConfig.builder().build());
    }

    static <T> T persist(Callable<T> command) throws Exception {
        long end = System.nanoTime() + 30_000_000_000L;
        while (true) {
            try {
                return command.call();
            } catch (JedisException error) {
                if (System.nanoTime() > end) {
                    throw error;
                }
                System.err.println("Jedis: " + error);
                Thread.sleep(50);
            }
        }
    }

    public static void main(String[] args) throws Exception {
        var nodes = Arrays.stream(args[1].split(","))
                .map(port -> new HostAndPort("127.0.0.1", Integer.parseInt(port)))
                .collect(Collectors.toSet());
        var killed = new AtomicBoolean();
        var listener = new Thread(() -> {
            try {
                System.in.read();
                killed.set(true);
            } catch (java.io.IOException error) {
                throw new java.io.UncheckedIOException(error);
            }
        });
        listener.setDaemon(true);
        listener.start();
        var client = persist(() -> connect(args[0], nodes));
        int written = 0;
        for (int left = 100; left > 0; written++) {
            boolean wasKilled = killed.get();
            String key = "Jedis:" + args[0] + ":" + written, value = "" + written;
            persist(() -> client.set(key, value));
            left -= wasKilled ? 1 : 0;
            if (written == 100) {
                System.out.println("ready");
            }
            Thread.sleep(2);
        }
        for (int number = 0; number < written; number++) {
            String key = "Jedis:" + args[0] + ":" + number;
            String found = persist(() -> client.get(key));
            if (!("" + number).equals(found)) {
                throw new AssertionError(key + " is " + found);
            }
        }
        System.out.println("done");
        System.exit(0);
    }
}
