/* The few declarations of GLib and GIO that the programs here need, so that no development package is. */
#include <stddef.h>
typedef int gboolean;
typedef void *gpointer;
typedef gboolean (*GSourceFunc)(gpointer);
typedef struct GMainLoop GMainLoop;
typedef struct GFile GFile;
typedef struct GFileInfo GFileInfo;
typedef struct GCancellable GCancellable;
typedef struct GAsyncResult GAsyncResult;
typedef struct GDBusProxy GDBusProxy;
typedef struct GError GError;
typedef void (*GAsyncReadyCallback)(gpointer, GAsyncResult *, gpointer);
GMainLoop *g_main_loop_new(void *context, gboolean running);
void g_main_loop_run(GMainLoop *);
void g_main_loop_quit(GMainLoop *);
unsigned g_timeout_add(unsigned ms, GSourceFunc, gpointer);
unsigned g_idle_add(GSourceFunc, gpointer);
gboolean g_file_test(const char *path, int test);
GFile *g_file_new_for_path(const char *path);
GFileInfo *g_file_query_info(GFile *, const char *, int, GCancellable *, GError **);
void g_file_query_info_async(GFile *, const char *, int, int, GCancellable *, GAsyncReadyCallback, gpointer);
GFileInfo *g_file_query_info_finish(GFile *, GAsyncResult *, GError **);
GDBusProxy *g_dbus_proxy_new_for_bus_sync(int, int, void *, const char *, const char *, const char *, GCancellable *, GError **);
void g_dbus_proxy_new_for_bus(int, int, void *, const char *, const char *, const char *, GCancellable *, GAsyncReadyCallback, gpointer);
GDBusProxy *g_dbus_proxy_new_for_bus_finish(GAsyncResult *, GError **);
void g_object_unref(gpointer);
