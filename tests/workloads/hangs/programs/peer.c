/* A chat client shows the name of a peer's address when it connects: looked up at once, or (FIXED) in a thread. */
#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include "glib.h"
static GMainLoop *loop;
static char host[256];
static void *look_up(void *unused) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(6667)};
  inet_pton(AF_INET, "198.51.100.7", &address.sin_addr);
  if (getnameinfo((struct sockaddr *)&address, sizeof address, host, sizeof host, NULL, 0, 0)) host[0] = 0;
  return NULL;
}
__attribute__((noinline)) static void on_peer_connected(void) {
#ifdef FIXED
  pthread_t thread;
  pthread_create(&thread, NULL, look_up, NULL);
  pthread_detach(thread);
#else
  look_up(NULL);
#endif
}
static gboolean on_network(gpointer unused) {
  on_peer_connected();
  g_timeout_add(1500, (GSourceFunc)g_main_loop_quit, loop);
  return 0;
}
static gboolean on_tick(gpointer unused) { return 1; }
int main(void) {
  loop = g_main_loop_new(NULL, 0);
  g_timeout_add(50, on_tick, NULL);
  g_timeout_add(60, on_network, NULL);
  g_main_loop_run(loop);
}
