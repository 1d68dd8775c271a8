"""PySide6: a window with a button, a timer, a worker thread that signals, text drawn into an image."""

import sys

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QApplication, QLabel, QPushButton, QVBoxLayout, QWidget


class Worker(QObject):
    done = Signal(int)

    def work(self) -> None:
        self.done.emit(sum(range(10000)))


app = QApplication(sys.argv)
window = QWidget()
layout = QVBoxLayout(window)
label, button = QLabel("nothing"), QPushButton("press")
layout.addWidget(label)
layout.addWidget(button)
window.show()
thread, worker = QThread(), Worker()
worker.moveToThread(thread)
thread.started.connect(worker.work)
worker.done.connect(lambda value: label.setText(str(value)))
button.clicked.connect(thread.start)
QTimer.singleShot(50, button.click)


def finish() -> None:
    image = QImage(window.size(), QImage.Format.Format_ARGB32)
    image.fill(Qt.GlobalColor.white)
    window.render(image)
    total = sum(image.pixel(x, y) & 255 for x in range(image.width()) for y in range(image.height()))
    print(label.text(), image.width() > 0, total)
    thread.quit()
    thread.wait()
    app.quit()


QTimer.singleShot(400, finish)
app.exec()
