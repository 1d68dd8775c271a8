/* editor.c - X without a toolkit: XNextEvent returns, and main calls the handler, which saves under a lock that another
 * process holds. FIXED: a thread saves. */
#include <X11/Xlib.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

static Window window;

__attribute__((noinline)) static void save(void) {
  int file = open("document", O_RDWR | O_CREAT, 0644);
  flock(file, LOCK_EX);
  if (write(file, "x", 1) != 1) _exit(1);
  close(file);
}

static void *saver(void *unused) {
  save();
  return unused;
}

__attribute__((noinline)) static void on_save(void) {
#ifdef FIXED
  pthread_t thread;
  pthread_create(&thread, NULL, saver, NULL);
  pthread_detach(thread);
#else
  (void)saver;
  save();
#endif
}

/* Somebody who types: another connection sends events. */
static void *typist(void *unused) {
  Display *display = XOpenDisplay(NULL);
  for (int n = 1; n <= 10; n++) {
    XEvent event = {.xclient = {.type = ClientMessage, .window = window, .format = 32, .data.l = {n}}};
    usleep(30000);
    XSendEvent(display, window, False, 0, &event);
    XFlush(display);
  }
  return unused;
}

static void other_owner(int ready) {
  int file = open("document", O_RDWR | O_CREAT, 0644);
  flock(file, LOCK_EX);
  if (write(ready, "x", 1) != 1) _exit(1);
  usleep(400000);
  _exit(0);
}

int main(void) {
  int ready[2];
  char c;
  pthread_t thread;
  XEvent event;
  XInitThreads();
  Display *display = XOpenDisplay(NULL);
  if (!display || pipe(ready)) return 1;
  window = XCreateSimpleWindow(display, DefaultRootWindow(display), 0, 0, 100, 100, 0, 0, 0);
  XMapWindow(display, window);
  XFlush(display);
  if (!fork()) other_owner(ready[1]);
  if (read(ready[0], &c, 1) != 1) return 1;
  pthread_create(&thread, NULL, typist, NULL);
  do {
    XNextEvent(display, &event);
    if (event.type == ClientMessage && event.xclient.data.l[0] == 3) on_save();
  } while (event.type != ClientMessage || event.xclient.data.l[0] != 10);
  wait(NULL);
  pthread_join(thread, NULL);
  return 0;
}
