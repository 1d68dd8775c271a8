/* pulling.c - a viewer runs GLib's loop itself, an iteration at a time, and draws between two. Drawing asks a helper
 * process and waits. FIXED: the answer is read when it is there. What follows the loop may take long. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "glib.h"

int g_main_context_iteration(void *context, int may_block);

static FILE *helper;
static char answer[16];

static gboolean tick(gpointer unused) { return 1; }

__attribute__((noinline)) static void draw(int picture) {
  if (picture == 8) {
    helper = popen("sleep 0.25; echo done", "r");
    if (!helper) abort();
#ifdef FIXED
    fcntl(fileno(helper), F_SETFL, O_NONBLOCK);
#endif
  }
  if (helper && !*answer) (void)!read(fileno(helper), answer, sizeof answer - 1);
}

int main(void) {
  g_timeout_add(20, tick, NULL);
  for (int picture = 0; picture < 25; picture++) {
    g_main_context_iteration(NULL, 1);
    draw(picture);
  }
  pclose(helper);
  usleep(150000);
  return 0;
}
