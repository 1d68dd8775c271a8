"""A picture viewer (GTK 3). The sidebar shows the mount's free space, the list reads each file as it is made,
and the title says who owns the folder, which the accounts service is asked over D-Bus.

Run: python3 viewer.py          (it clicks by itself and ends; needs PyGObject and a display, Xvfb does)
"""

import os

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gio, GLib, Gtk  # noqa: E402

FOLDER = os.path.join(os.getcwd(), "pictures")
os.makedirs(FOLDER, exist_ok=True)
for number in range(12):
    with open(os.path.join(FOLDER, f"{number}.ppm"), "wb") as picture:
        picture.write(b"P6 4 4 255\n" + bytes(48))


class Viewer(Gtk.Window):
    def __init__(self) -> None:
        super().__init__(title="pictures")
        box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL)
        self.sidebar = Gtk.Label(label="...")
        self.list = Gtk.ListBox()
        box.add(self.sidebar)
        box.add(self.list)
        self.add(box)
        self.connect("destroy", Gtk.main_quit)

    def refresh_sidebar(self) -> bool:
        folder = Gio.File.new_for_path(FOLDER)
        info = folder.query_filesystem_info("filesystem::free", None)
        self.sidebar.set_text(f"{info.get_attribute_uint64('filesystem::free') >> 20} MB free")
        return True

    def load_thumbnails(self) -> bool:
        for name in sorted(os.listdir(FOLDER)):
            with open(os.path.join(FOLDER, name), "rb") as file:
                size = len(file.read())
            self.list.add(Gtk.Label(label=f"{name}: {size}"))
        self.show_all()
        return False

    def show_owner(self) -> bool:
        try:
            proxy = Gio.DBusProxy.new_for_bus_sync(
                Gio.BusType.SESSION, Gio.DBusProxyFlags.NONE, None,
                "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", None,
            )  # fmt: skip
            self.set_title(f"pictures ({proxy.get_name()})")
        except GLib.Error as error:
            self.set_title(f"pictures ({error.message})")
        return False


viewer = Viewer()
viewer.show_all()
GLib.timeout_add(300, viewer.refresh_sidebar)
GLib.timeout_add(500, viewer.load_thumbnails)
GLib.timeout_add(700, viewer.show_owner)
GLib.timeout_add(1500, Gtk.main_quit)
Gtk.main()
