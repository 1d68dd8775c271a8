/* A file manager's sidebar asks for a mount's name whenever something changes: synchronously, or (FIXED) not. */
#include <stdio.h>
#include <unistd.h>
#include "glib.h"
static GMainLoop *loop;
static int changes;
static char share[4096];
static void shown(gpointer file, GAsyncResult *result, gpointer unused) {
  GFileInfo *info = g_file_query_info_finish(file, result, NULL);
  if (info) g_object_unref(info);
}
__attribute__((noinline)) static void sidebar_refresh(void) {
  GFile *file = g_file_new_for_path(share);
#ifdef FIXED
  g_file_query_info_async(file, "standard::display-name", 0, 0, NULL, shown, NULL);
#else
  GFileInfo *info = g_file_query_info(file, "standard::display-name", 0, NULL, NULL);
  if (info) g_object_unref(info);
#endif
  g_object_unref(file);
}
static gboolean on_change(gpointer unused) {
  sidebar_refresh();
  if (++changes < 4) return 1;
  g_timeout_add(100, (GSourceFunc)g_main_loop_quit, loop);
  return 0;
}
int main(void) {
  char here[4000];
  snprintf(share, sizeof share, "%s/share", getcwd(here, sizeof here));
  loop = g_main_loop_new(NULL, 0);
  g_timeout_add(30, on_change, NULL);
  g_main_loop_run(loop);
  (void)shown;
}
