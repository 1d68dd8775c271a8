/* A panel applet makes a D-Bus proxy when it is clicked: with the constructor that waits, or (FIXED) without. */
#include "glib.h"
static GMainLoop *loop;
static const char *name = "org.freedesktop.DBus", *path = "/org/freedesktop/DBus";
static void ready(gpointer source, GAsyncResult *result, gpointer unused) {
  GDBusProxy *proxy = g_dbus_proxy_new_for_bus_finish(result, NULL);
  if (proxy) g_object_unref(proxy);
}
__attribute__((noinline)) static void applet_connect(void) {
#ifdef FIXED
  g_dbus_proxy_new_for_bus(2, 0, NULL, name, path, name, NULL, ready, NULL);
#else
  GDBusProxy *proxy = g_dbus_proxy_new_for_bus_sync(2, 0, NULL, name, path, name, NULL, NULL);
  if (proxy) g_object_unref(proxy);
#endif
}
static gboolean on_click(gpointer unused) {
  applet_connect();
  g_timeout_add(200, (GSourceFunc)g_main_loop_quit, loop);
  return 0;
}
static gboolean on_tick(gpointer unused) { return 1; }
int main(void) {
  loop = g_main_loop_new(NULL, 0);
  g_timeout_add(20, on_tick, NULL);
  g_timeout_add(50, on_click, NULL);
  g_main_loop_run(loop);
  (void)ready;
}
