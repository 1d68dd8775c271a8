/* An editor checks at start which of its recent files still exist: one after the other, or (FIXED) all at once
 * in the background. */
#include <stdio.h>
#include <unistd.h>
#include "glib.h"
static GMainLoop *loop;
static char here[4000];
static void known(gpointer file, GAsyncResult *result, gpointer unused) {
  GFileInfo *info = g_file_query_info_finish(file, result, NULL);
  if (info) g_object_unref(info);
}
__attribute__((noinline)) static void fill_recent_menu(void) {
  for (int i = 0; i < 6; i++) {
    char path[4096];
    snprintf(path, sizeof path, "%s/recent/%d.txt", here, i);
#ifdef FIXED
    GFile *file = g_file_new_for_path(path);
    g_file_query_info_async(file, "standard::name", 0, 0, NULL, known, NULL);
    g_object_unref(file);
#else
    g_file_test(path, 16);
#endif
  }
}
static gboolean on_startup(gpointer unused) {
  fill_recent_menu();
  g_timeout_add(150, (GSourceFunc)g_main_loop_quit, loop);
  return 0;
}
static gboolean on_tick(gpointer unused) { return 1; }
int main(void) {
  if (!getcwd(here, sizeof here)) return 1;
  loop = g_main_loop_new(NULL, 0);
  g_timeout_add(20, on_tick, NULL);
  g_idle_add(on_startup, NULL);
  g_main_loop_run(loop);
  (void)known;
}
