"""A dialog asks for news when it is made: before it shows anything, or ("fixed") in a thread."""

import sys
import threading
import tkinter as tk
import urllib.request

fixed = "fixed" in sys.argv
url = sys.argv[1]
urllib.request.build_opener()


class NewsDialog(tk.Toplevel):
    def __init__(self, parent: tk.Tk) -> None:
        super().__init__(parent)
        self.label = tk.Label(self, text="...")
        self.label.pack()
        self.news = b""
        if fixed:
            threading.Thread(target=self.fetch, daemon=True).start()
            self.after(50, self.show)
        else:
            self.fetch()
            self.show()

    def fetch(self) -> None:
        self.news = urllib.request.urlopen(url).read()

    def show(self) -> None:
        if self.news:
            self.label["text"] = self.news.decode()
        else:
            self.after(50, self.show)


root = tk.Tk()
root.after(150, lambda: NewsDialog(root))
root.after(1200, root.destroy)
root.mainloop()
