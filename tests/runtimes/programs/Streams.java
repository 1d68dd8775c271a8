// OpenJDK: parallel streams, fork-join, executors, locks, garbage from several threads under G1, exceptions.
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.*;
import java.util.stream.*;
class Streams {
  static class Fib extends RecursiveTask<Integer> {
    final int n;
    Fib(int n) { this.n = n; }
    protected Integer compute() {
      if (n < 12) return n < 2 ? n : new Fib(n - 1).compute() + new Fib(n - 2).compute();
      Fib a = new Fib(n - 1);
      a.fork();
      return new Fib(n - 2).compute() + a.join();
    }
  }
  public static void main(String[] args) throws Exception {
    System.out.println(IntStream.range(0, 200000).parallel().filter(i -> i % 7 == 3).mapToLong(i -> (long) i * i).sum());
    System.out.println(new ForkJoinPool(4).invoke(new Fib(18)));
    ExecutorService pool = Executors.newFixedThreadPool(4);
    ConcurrentHashMap<Integer, Integer> map = new ConcurrentHashMap<>();
    AtomicLong racy = new AtomicLong();
    long[] plain = new long[1];
    List<Future<?>> all = new ArrayList<>();
    for (int t = 0; t < 4; t++) {
      final int me = t;
      all.add(pool.submit(() -> {
        for (int i = 0; i < 20000; i++) {
          map.merge(i % 100, me, Integer::sum);
          plain[0]++;
          byte[] garbage = new byte[1000 + i % 100];
          racy.addAndGet(garbage.length);
        }
      }));
    }
    for (Future<?> f : all) f.get();
    pool.shutdown();
    System.out.println(map.values().stream().mapToInt(i -> i).sum() + " " + racy.get() + " " + (plain[0] > 0) + " " + plain[0]);
    try {
      Object o = null;
      o.hashCode();
    } catch (NullPointerException e) {
      System.out.println("null");
    }
    System.gc();
    System.out.println(new Object().hashCode());
  }
}
