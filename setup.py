"""Compiles the optional kernels of local SGD, rounding and exact sums; everything else about the package is in pyproject.toml.

Without a compiler the package installs all the same: `hedgerow.learn.descent.kernel.available` is False, and
`hedgerow.privacy.grid` and `hedgerow.stats.whole` compute by numpy. The kernels
choose among instruction sets when they run, so nothing here depends on the machine that builds it. `-ffast-math` is left
out on purpose: a library linked with it changes how the whole process treats tiny numbers.
"""

import sysconfig

from setuptools import Extension, setup

DESCENT, PRIVACY = "src/hedgerow/learn/descent", "src/hedgerow/privacy"

shared = {
    "language": "c++",
    "optional": True,
    "py_limited_api": True,
    "define_macros": [("Py_LIMITED_API", "0x030B0000")],
    "extra_compile_args": ["-std=c++17", "-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"],
}
separate = shared | {"extra_compile_args": [*shared["extra_compile_args"], "-ffp-contract=off"]}  # each product is rounded
extensions = [
    Extension("hedgerow.learn.descent._kernel", [f"{DESCENT}/kernel.cpp"], depends=[f"{DESCENT}/kernel.hpp"], **shared),
    Extension("hedgerow.privacy._steps", [f"{PRIVACY}/steps.cpp"], **shared),
    Extension("hedgerow.stats._sums", ["src/hedgerow/stats/sums.cpp"], **separate),
]

free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # has no stable interface yet
setup(
    ext_modules=[] if free_threaded else extensions,
    options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
