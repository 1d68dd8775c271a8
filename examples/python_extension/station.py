"""Prints what the sensor says."""

import sensor

print(f"{sensor.now():.6f} {sensor.noise(8).hex()}")
for line in sensor.log("readings.txt"):
    print(line.split())
for bad in (99, "seven"):
    try:
        sensor.noise(bad)
    except (ValueError, TypeError) as error:
        print(type(error).__name__, error)
try:
    sensor.log("no such file")
except OSError as error:
    print("no file:", error.filename)
