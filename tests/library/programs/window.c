/* Opens a window, draws, and prints what the server says of it and of the pointer. */
#include <X11/Xlib.h>
#include <stdio.h>

int main(void)
{
	Display *d = XOpenDisplay(NULL);
	if (!d) {
		puts("no display");
		return 1;
	}
	int s = DefaultScreen(d);
	Window w = XCreateSimpleWindow(d, RootWindow(d, s), 10, 20, 300, 200, 0, BlackPixel(d, s), WhitePixel(d, s));
	XSelectInput(d, w, ExposureMask | StructureNotifyMask);
	XStoreName(d, w, "window");
	XMapWindow(d, w);
	GC gc = XCreateGC(d, w, 0, NULL);
	XEvent e;
	do {
		XNextEvent(d, &e);
		printf("event %d of the display: %d\n", e.type, e.xany.display == d);
	} while (e.type != Expose);
	XFillRectangle(d, w, gc, 5, 5, 50, 60);
	XWindowAttributes a;
	XGetWindowAttributes(d, w, &a);
	Window root, child;
	int rx, ry, x, y;
	unsigned mask;
	XQueryPointer(d, w, &root, &child, &rx, &ry, &x, &y, &mask);
	char *name;
	XFetchName(d, w, &name);
	printf("%s %lx %dx%d depth %d pointer %d,%d of %dx%d, %s\n", name, w, a.width, a.height, a.depth, rx, ry,
	       DisplayWidth(d, s), DisplayHeight(d, s), ServerVendor(d));
	XFree(name);
	XCloseDisplay(d);
	return 0;
}
