/* A small key-value server on one epoll loop: SET key value, GET key, STATS, LOG. Every request is answered from the
 * loop, and that is the trouble: SET writes its journal through to the disk, STATS computes for long, LOG asks a name
 * server who is asking. Build: make. Run: build/server PORT; ask with: printf 'SET a 1\n' | nc localhost PORT */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define KEYS 64
static char keys[KEYS][32], values[KEYS][64];
static int used, journal;

static void append_to_journal(const char *line) {
  if (write(journal, line, strlen(line)) < 0) perror("journal");
  fsync(journal);
}

static void set_value(const char *key, const char *value) {
  int slot = 0;
  while (slot < used && strcmp(keys[slot], key)) slot++;
  if (slot == KEYS) return;
  if (slot == used) used++;
  snprintf(keys[slot], sizeof keys[slot], "%s", key);
  snprintf(values[slot], sizeof values[slot], "%s", value);
  append_to_journal(key);
}

static unsigned long spread(void) {
  unsigned long hash = 5381;
  for (int round = 0; round < 60000000; round++)
    for (int slot = 0; slot < used; slot++) hash = hash * 33 + (unsigned char)values[slot][round % 8];
  return hash;
}

static void log_peer(int client) {
  struct sockaddr_in peer;
  socklen_t size = sizeof peer;
  char host[256] = "?";
  if (!getpeername(client, (struct sockaddr *)&peer, &size)) {
    inet_pton(AF_INET, "198.51.100.23", &peer.sin_addr); /* as if it came from elsewhere */
    getnameinfo((struct sockaddr *)&peer, size, host, sizeof host, NULL, 0, 0);
  }
  dprintf(client, "%s\n", host);
}

static void on_request(int client) {
  char line[256], key[32], value[64];
  ssize_t size = read(client, line, sizeof line - 1);
  if (size <= 0) {
    close(client);
    return;
  }
  line[size] = 0;
  if (sscanf(line, "SET %31s %63s", key, value) == 2) {
    set_value(key, value);
    dprintf(client, "OK\n");
  } else if (sscanf(line, "GET %31s", key) == 1) {
    int slot = 0;
    while (slot < used && strcmp(keys[slot], key)) slot++;
    dprintf(client, "%s\n", slot < used ? values[slot] : "-");
  } else if (!strncmp(line, "STATS", 5)) {
    dprintf(client, "%lu\n", spread());
  } else if (!strncmp(line, "LOG", 3)) {
    log_peer(client);
  } else if (!strncmp(line, "QUIT", 4)) {
    exit(0);
  }
}

int main(int argc, char **argv) {
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(argc > 1 ? atoi(argv[1]) : 7777)};
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int server = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), on = 1, loop = epoll_create1(0);
  setsockopt(server, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(server, (struct sockaddr *)&address, sizeof address) || listen(server, 16)) {
    perror("server");
    return 1;
  }
  journal = open("journal", O_CREAT | O_APPEND | O_WRONLY, 0644);
  struct epoll_event event = {.events = EPOLLIN, .data.fd = server};
  epoll_ctl(loop, EPOLL_CTL_ADD, server, &event);
  puts("ready");
  fflush(stdout);
  for (;;) {
    epoll_wait(loop, &event, 1, -1);
    if (event.data.fd == server) {
      int client = accept4(server, NULL, NULL, SOCK_NONBLOCK);
      struct epoll_event added = {.events = EPOLLIN, .data.fd = client};
      epoll_ctl(loop, EPOLL_CTL_ADD, client, &added);
    } else {
      on_request(event.data.fd);
    }
  }
}
