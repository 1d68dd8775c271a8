"""A mail program's window (Qt for Python). Attachments are looked at in paintEvent, sending waits for a
lock that the indexer holds while it writes, and the address book is read from a program.

Run: python3 mailer.py          (it clicks by itself and ends; needs PySide6; QT_QPA_PLATFORM=offscreen does)
"""

import os
import sys
import threading

from PySide6 import QtCore, QtGui, QtWidgets

ATTACHMENTS = [os.path.join(os.getcwd(), "attachments", f"{number}.pdf") for number in range(5)]
index = threading.Lock()


def index_mail() -> None:
    """The indexer: writes its file with the lock held."""
    for _round in range(4):
        with index, open("index", "ab") as file:
            for _part in range(12):
                file.write(b"word" * 4000)
                file.flush()
                os.fsync(file.fileno())
                threading.Event().wait(0.03)
        threading.Event().wait(0.02)


class Mailer(QtWidgets.QWidget):
    def __init__(self) -> None:
        super().__init__()
        self.resize(200, 80)
        self.addresses = ""
        QtCore.QTimer.singleShot(250, self.send)
        QtCore.QTimer.singleShot(500, self.read_address_book)
        QtCore.QTimer.singleShot(800, self.update)
        QtCore.QTimer.singleShot(1200, QtWidgets.QApplication.quit)

    def paintEvent(self, event: QtGui.QPaintEvent) -> None:
        there = sum(os.path.exists(path) for path in ATTACHMENTS)
        painter = QtGui.QPainter(self)
        painter.fillRect(0, 0, 10 * there, 10, QtGui.QColor("gray"))
        painter.end()

    def send(self) -> None:
        with index:
            self.setWindowTitle("sent")

    def read_address_book(self) -> None:
        process = QtCore.QProcess()
        process.start("sh", ["-c", "sleep 0.2; echo a@example.org"])
        process.waitForFinished()
        self.addresses = process.readAll().data().decode()


application = QtWidgets.QApplication(sys.argv)
threading.Thread(target=index_mail, daemon=True).start()
window = Mailer()
window.show()
application.exec()
