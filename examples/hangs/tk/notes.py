"""A note pad. It saves on every pause in typing, looks for a newer version when it opens, and checks which
of the recent notes still exist whenever the menu is shown.

Run: python3 notes.py           (it types by itself and ends; needs a display, Xvfb does)
"""

import os
import pathlib
import subprocess
import tkinter as tk

FOLDER = pathlib.Path.cwd() / "notes"
FOLDER.mkdir(exist_ok=True)


class Notes(tk.Tk):
    def __init__(self) -> None:
        super().__init__()
        self.text = tk.Text(self, width=40, height=6)
        self.text.pack()
        self.status = tk.Label(self, text="")
        self.status.pack()
        self.recent = [FOLDER / f"note-{number}.txt" for number in range(8)]
        self.after(200, self.check_for_update)
        for step in range(4):
            self.after(700 + 150 * step, self.type_and_save, f"line {step}\n")
        self.after(1400, self.show_recent)
        self.after(1800, self.destroy)

    def check_for_update(self) -> None:
        answer = subprocess.run(["sh", "-c", "sleep 0.3; echo 2.0"], capture_output=True, text=True)
        self.status["text"] = f"newest version: {answer.stdout.strip()}"

    def type_and_save(self, line: str) -> None:
        self.text.insert("end", line)
        self.save()

    def save(self) -> None:
        with open(FOLDER / "note-0.txt", "w") as file:
            file.write(self.text.get("1.0", "end"))
            file.flush()
            os.fsync(file.fileno())
        self.status["text"] = "saved"

    def show_recent(self) -> None:
        there = [path.name for path in self.recent if path.exists()]
        self.status["text"] = ", ".join(there)


Notes().mainloop()
