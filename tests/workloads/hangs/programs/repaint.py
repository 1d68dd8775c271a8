"""A status window shows the free space of a share whenever it is repainted: asked then, or ("fixed") kept by
a thread."""

import os
import sys
import threading
import tkinter as tk

fixed = "fixed" in sys.argv
free = 0
done = threading.Event()


def look() -> None:
    global free
    while not done.wait(0.1):
        free = os.statvfs("share").f_bavail


def repaint(event: object) -> None:
    canvas.delete("all")
    blocks = free if fixed else os.statvfs("share").f_bavail
    canvas.create_text(60, 20, text=str(blocks))


root = tk.Tk()
canvas = tk.Canvas(root, width=120, height=40)
canvas.pack()
canvas.create_text(60, 20, text="...")
canvas.bind("<Configure>", repaint)
if fixed:
    threading.Thread(target=look, daemon=True).start()
for step in range(4):
    root.after(150 + 100 * step, root.geometry, f"{200 + 10 * step}x90")
root.after(900, root.destroy)
root.mainloop()
done.set()
