"""Loads the core with an OpenMP runtime whose idle threads soon sleep.

GNU's runtime lets them spin for milliseconds. Where another process wants the core, every barrier then costs a whole
time slice; a few microseconds of spinning bridge the gap between the kernels of one program just as well. The runtime
reads the environment when it is loaded, so the setting stands only while that happens.
"""

import os

if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
    from . import _C as _C
else:
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        from . import _C as _C
    finally:
        del os.environ["GOMP_SPINCOUNT"]
