"""Compiles the optional kernels of local SGD, of gradients record by record, of rounding, noise and exact sums.

Everything else about the package is in pyproject.toml. Without a compiler it installs all the same:
`hedgerow.learn.descent.kernel.available` is False, and `hedgerow.learn.rowwise`, `hedgerow.stats` and `hedgerow.privacy`
compute, round and draw noise by NumPy. The kernels choose among instruction sets when they run, so nothing here depends on the
machine that builds it.
`-ffast-math` is left out on purpose: a library linked with it changes how the whole process treats tiny numbers. Where bits are
promised, the compiler may not join a multiplication and an addition.
"""

import sysconfig
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_py import build_py

DESCENT, ROWWISE, PRIVACY = "src/hedgerow/learn/descent", "src/hedgerow/learn/rowwise", "src/hedgerow/privacy"
ROW_HEADERS = [f"{ROWWISE}/{name}.hpp" for name in ("calls", "chain", "elements", "outer", "plain", "vectors")]

shared = {
    "language": "c++",
    "optional": True,
    "py_limited_api": True,
    "define_macros": [("Py_LIMITED_API", "0x030B0000")],
    "extra_compile_args": ["-std=c++17", "-O3", "-g0", "-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"],
}
exact = shared | {"extra_compile_args": [*shared["extra_compile_args"], "-ffp-contract=off"]}
extensions = [
    Extension("hedgerow.learn.descent._kernel", [f"{DESCENT}/kernel.cpp"], depends=[f"{DESCENT}/kernel.hpp"], **shared),
    Extension("hedgerow.learn.rowwise._rows", [f"{ROWWISE}/rows.cpp"], depends=ROW_HEADERS, **exact),
    Extension("hedgerow.privacy._steps", [f"{PRIVACY}/steps.cpp"], depends=[f"{PRIVACY}/held.hpp"], **shared),
    Extension("hedgerow.stats._sums", ["src/hedgerow/stats/sums.cpp"], **exact),
    Extension("hedgerow.privacy._coarse", [f"{PRIVACY}/coarse.cpp"], depends=[f"{PRIVACY}/held.hpp"], **shared),
]


class WithErrorPages(build_py):
    """Also copies the pages of errors, which lie among the other pages, so that `hedgerow explain` finds them."""

    def run(self):
        super().run()
        if not self.editable_mode:
            self.mkpath(f"{self.build_lib}/hedgerow/error_pages")
            for page in Path("docs/errors").glob("HR-*.md"):
                self.copy_file(str(page), f"{self.build_lib}/hedgerow/error_pages/{page.name}")


free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # has no stable interface yet
setup(
    cmdclass={"build_py": WithErrorPages},
    ext_modules=[] if free_threaded else extensions,
    options={} if free_threaded else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
