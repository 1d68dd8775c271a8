/* OpenMP: parallel loops, reductions, critical sections, tasks, a race on purpose. */
#include <omp.h>
#include <stdio.h>
int main(void) {
  double sum = 0;
  volatile long racy = 0;
  long order = 0;
  omp_set_num_threads(4);
#pragma omp parallel for reduction(+ : sum) schedule(dynamic, 100)
  for (int i = 0; i < 100000; i++) sum += 1.0 / (1 + i);
  for (int round = 0; round < 20; round++) {
#pragma omp parallel for
    for (int i = 0; i < 400; i++) {
      racy++;
#pragma omp critical
      order = order * 31 + omp_get_thread_num();
    }
#pragma omp barrier
  }
  long tasks = 0;
#pragma omp parallel
#pragma omp single
  for (int i = 0; i < 50; i++)
#pragma omp task
#pragma omp atomic
    tasks += i;
  printf("%.12f %ld %lx %ld\n", sum, racy, (unsigned long)order, tasks);
}
