/* An extension module that reads what no second run reads the same: a clock, random bytes, a file. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <time.h>

PyObject *sensor_now(PyObject *self, PyObject *none)
{
	struct timespec t;
	(void)self, (void)none;
	clock_gettime(CLOCK_REALTIME, &t);
	return PyFloat_FromDouble(t.tv_sec + t.tv_nsec * 1e-9);
}

PyObject *sensor_noise(PyObject *self, PyObject *count)
{
	char bytes[64];
	long n = PyLong_AsLong(count);
	FILE *f;
	(void)self;
	if (n == -1 && PyErr_Occurred())
		return NULL;
	if (n < 0 || n > (long)sizeof bytes) {
		PyErr_SetString(PyExc_ValueError, "0 to 64 bytes");
		return NULL;
	}
	f = fopen("/dev/urandom", "rb");
	n = fread(bytes, 1, n, f);
	fclose(f);
	return PyBytes_FromStringAndSize(bytes, n);
}

PyObject *sensor_log(PyObject *self, PyObject *path)
{
	char line[200];
	PyObject *list, *item;
	FILE *f;
	(void)self;
	f = fopen(PyUnicode_AsUTF8(path), "r");
	if (!f)
		return PyErr_SetFromErrnoWithFilename(PyExc_OSError, PyUnicode_AsUTF8(path));
	list = PyList_New(0);
	while (fgets(line, sizeof line, f)) {
		item = PyUnicode_FromStringAndSize(line, strlen(line));
		PyList_Append(list, item);
		Py_DECREF(item);
	}
	fclose(f);
	return list;
}

static PyMethodDef methods[] = {
	{"now", sensor_now, METH_NOARGS, "Seconds since 1970."},
	{"noise", sensor_noise, METH_O, "So many random bytes."},
	{"log", sensor_log, METH_O, "The lines of a file."},
	{0},
};
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "sensor", NULL, -1, methods};

PyMODINIT_FUNC PyInit_sensor(void)
{
	return PyModule_Create(&definition);
}
